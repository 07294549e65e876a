"""A browser without a browser: one websocket session of a Streamlit server, told by what texts it was sent."""

from contextlib import contextmanager

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Common_pb2 import FileUploaderState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

ENDED = {ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY}  # not: early, for another run


@contextmanager
def session(url, headers=None, tls=None, **options):
    """An open session of the server at `url` (http or https), with these headers in its handshake."""
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    with connect(
        address, additional_headers=headers or {}, subprotocols=["streamlit"], ssl=tls, max_size=None, open_timeout=60,
        proxy=None, **options,
    ) as line:  # fmt: skip
        yield line


def texts(line, query="", seconds=60):
    """Everything that a run of the app's script sent, as one text."""
    asked = BackMsg()
    asked.rerun_script.query_string = query
    line.send(asked.SerializeToString())
    sent = []
    while True:
        message = ForwardMsg()
        message.ParseFromString(line.recv(timeout=seconds))
        sent.append(str(message))
        if message.WhichOneof("type") == "script_finished":
            return "\n".join(sent)


class Page:
    """A place of the app as a browser holds it: what it was sent by key or label, and the widgets it says back."""

    def __init__(self, line, place="", query=""):
        self.line, self.place, self.query = line, place, query
        self.elements, self.fragments, self.said, self.session = {}, {}, {}, ""

    def rerun(self, fragment="", **pressed):
        """Ask for the page, or a fragment of it; `pressed` are (id, field, value) said this once."""
        asked = BackMsg()
        state = asked.rerun_script
        state.query_string, state.page_name, state.fragment_id = self.query, self.place, fragment
        for identity, (field, value) in {**self.said, **pressed}.items():
            widget = state.widget_states.widgets.add(id=identity)
            if field in ("string_array_value", "file_uploader_state_value"):
                getattr(widget, field).MergeFrom(value)
            else:
                setattr(widget, field, value)
        self.line.send(asked.SerializeToString())

    def take(self, seconds=60):
        """The next message, what it shows taken over. A TimeoutError where none comes."""
        message = ForwardMsg()
        message.ParseFromString(self.line.recv(timeout=seconds))
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            shown = message.delta.new_element
            element = getattr(shown, shown.WhichOneof("type"))
            if identity := getattr(element, "id", ""):
                for name in (identity.split("-", 2)[-1], getattr(element, "label", "")):
                    self.elements[name], self.fragments[name] = element, message.delta.fragment_id
        return message

    def finish(self, seconds=120):
        """What is shown until the script has run to its end, as text."""
        shown = []
        while (message := self.take(seconds)).script_finished not in ENDED or not message.HasField("script_finished"):
            shown.append(message)
        return "\n".join(str(one) for one in shown if one.WhichOneof("type") == "delta")

    def say(self, name, field, value):
        """A widget's value from now on, sent with the next run."""
        self.said[self.elements[name].id] = (field, value)

    def press(self, name, fragment=""):
        """A button."""
        self.rerun(fragment, **{self.elements[name].id: ("trigger_value", True)})

    def upload(self, name, file_name, data, put):
        """A file for an uploader; `put(address, data)` brings it to the server."""
        asked = BackMsg()
        asked.file_urls_request.request_id = "one"
        asked.file_urls_request.file_names.append(file_name)
        asked.file_urls_request.session_id = self.session
        self.line.send(asked.SerializeToString())
        while (message := self.take()).WhichOneof("type") != "file_urls_response":
            pass
        place = message.file_urls_response.file_urls[0]
        put(place.upload_url, data)
        state = FileUploaderState()
        state.uploaded_file_info.add(name=file_name, size=len(data), file_id=place.file_id, file_urls=place)
        self.say(name, "file_uploader_state_value", state)
