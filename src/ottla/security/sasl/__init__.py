"""SASL: how a client shows who he is (KIP-12, 43, 84, 152, 255, 368).

`conversation` is the server's end of a connection before its login, and again at each re-login: handshake, tokens bare
or in SaslAuthenticate, what is answered, what closes. It knows nothing of mechanisms but that an `outcomes.Exchange`
takes messages and says what came of each. `plain`, `scram` and `oauthbearer` are such exchanges, and what a client says
in each; `speaker` is the client's end of the conversation. Delegation tokens log in by SCRAM.

Two rules run through it. Who does not exist is treated as one who has another password: the same steps, the same work,
the same words (Kafka tells which SCRAM users exist by the step that fails). And what is secret is compared in constant
time.
"""
