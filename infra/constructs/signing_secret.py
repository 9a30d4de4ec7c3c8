from aws_cdk import RemovalPolicy
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.constructs.nag import acknowledge

LENGTH = 64


class SigningSecret(Construct):
    """What every key that Duetime signs with is derived from. Generated once by the stack; nobody has to know it."""

    def __init__(self, scope: Construct, construct_id: str, *, keep_data: bool) -> None:
        super().__init__(scope, construct_id)
        secret = secretsmanager.CfnSecret(
            self,
            "Secret",
            description="Duetime derives from it the keys of webhook signatures and page tokens",
            # Letters and digits alone: 64 of them are more than the 256 bits that HMAC-SHA256 can use.
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                password_length=LENGTH, exclude_punctuation=True
            ),
        )
        secret.apply_removal_policy(RemovalPolicy.RETAIN if keep_data else RemovalPolicy.DESTROY)
        # Not `Ref`, which is the ARN too, but in the emulator the name.
        self.arn = secret.attr_id
        acknowledge(
            secret,
            "AwsSolutions-SMG4",
            "Receivers of webhooks verify with keys derived from it: a rotation would make every one of them refuse "
            "what Duetime sends. No person and no client holds it.",
        )
