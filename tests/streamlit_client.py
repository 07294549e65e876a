"""A browser without a browser: one websocket session of a Streamlit server, told by what texts it was sent."""

from contextlib import contextmanager

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect


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
