"""The API's contract. Requests are described by the handlers' own code, through Powertools; answers by the models here,
which only this package and the tests import: the functions build answers without pydantic, which would cost them time
at every cold start. `make openapi` writes the document, and a test fails if it is not what the code says."""
