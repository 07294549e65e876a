// On every other place: what this browser holds and no server has yet is told, and where it is sent.

const LATE = 4000; // ms after the press; until then the page that it was given on is sending it

export default function ({ parentElement }) {
  const box = parentElement.querySelector(".waiting");
  const look = () => {
    const late = leftBehind().filter((entry) => !(Date.now() - entry.pressed < LATE)).length;
    const words = late ? `${late} labels of this browser are NOT saved. Open Labels: it sends them.` : "";
    if (box.textContent !== words) box.textContent = words;
    box.hidden = !late;
  };
  look();
  const clock = setInterval(look, LATE / 2);
  return () => clearInterval(clock);
}
