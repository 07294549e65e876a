// The payload as it arrived, and looking figures up in it. Layout: pages/bench/payload.py.

const VIEWS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array };

/** The header, with every array in reach through `array(reference)`. */
export function decode(data) {
  if (!(data instanceof Uint8Array)) throw new Error(`the payload is ${typeof data}, expected bytes`);
  const { buffer } = data.slice(); // once: it arrives in the middle of a message, where no array can begin
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const views = new Map();
  const view = ({ at, type, shape, values }) => {
    const start = 4 + length + at, size = shape.reduce((product, one) => product * one, 1);
    if (type === "bit") {
      const bytes = new Uint8Array(buffer, start, Math.ceil(size / 8));
      return Uint8Array.from({ length: size }, (_, i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1);
    }
    const array = new VIEWS[type](buffer, start, size);
    if (!values) return array;
    const table = view(values);
    return Float64Array.from(array, (place) => table[place]);
  };
  header.array = (reference) => {
    if (!reference) return null;
    if (!views.has(reference)) views.set(reference, view(reference));
    return views.get(reference);
  };
  return header;
}

/** The knob of that name, with its stage; undefined where the pipeline has none such any more. */
export function knobOf(header, stage, setting) {
  const knob = header.stages[stage]?.knobs.find((one) => one.setting === setting);
  return knob && { stage, knob };
}

/** The position nearest to a value; positions ascend. */
export function nearest(positions, value) {
  let low = 0, high = positions.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - positions[low - 1] < positions[low] - value ? low - 1 : low;
}

const plain = (figures) => figures && [figures.precision, figures.recall, figures.f, figures.kept];

/**
 * What is in sight at a knob's position; without a drag, what Python said. `known` is false where the position needs an
 * answer of Python first. `kept(row)` and `f(question)` give what A does there, or null where that is not known.
 */
export function figuresAt(header, drag) {
  const base = {
    known: true, all: plain(header.all.a), one: header.one && plain(header.one.a), counts: header.all.counts,
    kept: (row) => row.a?.kept ?? null, f: (index) => header.array(header.pipelines[0].f)?.[index] ?? null, moved: false,
  };
  const at = drag && knobOf(header, drag.stage, drag.setting);
  if (!at || drag.value === at.knob.value) return base;
  const { steps, positions } = at.knob;
  if (!steps || drag.position === null) return { ...base, known: false, moved: true };
  const n = positions.shape[0];
  const column = (reference) => { const values = header.array(reference); return [0, 1, 2, 3].map((line) => values[line * n + drag.position]); };
  const mask = header.array(steps.kept), counts = header.array(steps.counts), f = header.array(steps.per_question);
  return {
    known: true, moved: true,
    all: column(steps.means),
    one: header.one && (steps.one.shape[1] === n ? column(steps.one) : base.one),
    counts: counts && [0, 1, 2].map((line) => counts[line * n + drag.position]),
    kept: (row) => (row.a === null ? null : row.step === null ? row.a.kept : mask[row.step * n + drag.position] === 1),
    f: (index) => (f ? f[index * n + drag.position] : null),
  };
}
