"""A scripted OpenID Connect provider on loopback, for tests of the log-in: discovery, consent page, token and keys.

It keeps to the protocol where a client can notice: one-time codes bound to client, redirect address and PKCE challenge,
RS256 tokens with issuer, audience and nonce. Who may log in is a list of claims; there are no passwords.
"""

import base64
import hashlib
import html
import json
import secrets
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, CLIENT_SECRET = "winnow-test", "client-canary-5d1f77ab90c2"


class Provider:
    """What the provider knows: its people, the codes it gave out, the requests it got."""

    def __init__(self, people):
        self.people = {claims["sub"]: claims for claims in people}
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.codes = {}
        self.tokens = []
        self.asked = []
        self.wrong_nonce = self.wrong_key = False
        self.issuer = ""

    def metadata(self):
        places = {"authorization": "authorize", "token": "token", "end_session": "end"}
        found = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in places.items()}
        return found | {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def consent(self, asked):
        """The page that a person sees: one link for each account."""
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        links = []
        for sub in self.people:
            code = secrets.token_urlsafe()
            self.codes[code] = (sub, asked)
            back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            links.append(f'<p><a href="{html.escape(back)}">{html.escape(sub)}</a></p>')
        return f"<h1>Who are you?</h1>{''.join(links)}"

    def exchange(self, form, authorization):
        """(status, answer) to a code: each is good once, for who asked for it."""
        given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        sub, asked = self.codes.pop(form.get("code"), (None, None))
        if given != f"{CLIENT}:{CLIENT_SECRET}" or sub is None or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        times = {"iat": now, "exp": now + 600}
        claims = {"iss": self.issuer, "aud": CLIENT, "nonce": asked["nonce"], **times, **self.people[sub]}
        if self.wrong_nonce:
            claims["nonce"] = "another"
        key = RSAKey.generate_key(2048) if self.wrong_key else self.key
        access = f"access-canary-{secrets.token_hex(8)}"
        identity = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        self.tokens += [access, identity]
        return 200, {"access_token": access, "token_type": "Bearer", "expires_in": 600, "id_token": identity}


def handler_of(provider):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = urlsplit(self.path)
            asked = dict(parse_qsl(parts.query))
            provider.asked.append((parts.path, asked))
            if parts.path == "/.well-known/openid-configuration":
                self.answer(200, provider.metadata())
            elif parts.path == "/jwks":
                self.answer(200, {"keys": [provider.key.as_dict(private=False)]})
            elif parts.path == "/authorize":
                self.answer(200, provider.consent(asked), "text/html")
            elif parts.path == "/end":
                self.send_response(302)
                self.send_header("Location", asked["post_logout_redirect_uri"])
                self.end_headers()
            else:
                self.answer(404, {})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            provider.asked.append((self.path, {}))
            self.answer(*provider.exchange(dict(parse_qsl(body)), self.headers.get("Authorization", "")))

        def answer(self, status, value, kind="application/json"):
            data = (value if isinstance(value, str) else json.dumps(value)).encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            """Nothing."""

    return Handler


@contextmanager
def provided(*people):
    """A running provider whose accounts have these claims (`sub` names them)."""
    provider = Provider(people)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(provider))
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
