"""What OpenAI's clients send and read. A field that is not listed here is refused by its name."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError


def _with_message(kind: str, message: str) -> WrapValidator:
    """One sentence for what may be of several types: pydantic would complain once for each."""

    def validated(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError(kind, message) from None

    return WrapValidator(validated)


def _as_integer(value: Any) -> Any:
    """JSON has one kind of number, and 16.0 is as whole as 16."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_as_integer)]
SOME = Field(min_length=1)
Ids = Annotated[list[Annotated[Whole, Field(ge=0, lt=2**31)]], SOME]
Texts = Annotated[
    str | Annotated[list[str], SOME] | Ids | Annotated[list[Ids], SOME],
    _with_message(
        "texts", "should be a text, a list of texts, a list of token ids, or a list of such lists; no list empty"
    ),
]
Stop = Annotated[str, StringConstraints(min_length=1)]
Stops = Annotated[
    Stop | Annotated[list[Stop], Field(max_length=4)],
    _with_message("stop", "should be a text or up to 4 of them, none empty"),
]


class OpenAIRequest(BaseModel):
    """Types are taken at their word: "5" is no number, and true is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    api_key: str | None = None  # the middleware has read it

    model: str
    user: str | None = Field(None, description="Accepted, and neither used nor kept.")


class StreamOptions(BaseModel):
    """What a stream says beside the text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = Field(None, description="One more event before the end, with the whole usage.")
    include_obfuscation: Literal[False] | None = Field(None, description="Events are never padded.")


class CompletionRequest(OpenAIRequest):
    """A text to continue."""

    prompt: Texts | None = Field(None, description="null is the beginning of a document.")
    max_tokens: Whole | None = Field(16, ge=0, description="The most to write, an end among them.")
    temperature: float | None = Field(1, ge=0, le=2, description="0 always takes the most likely token.")
    top_p: float | None = Field(1, ge=0, le=1)
    n: Whole | None = Field(1, ge=1, description="Completions of each prompt.")
    best_of: Whole | None = Field(None, ge=1, description="Write so many and give the n most likely a token.")
    seed: Whole | None = Field(None, ge=-(2**63), lt=2**63, description="The same seed, the same text.")
    stop: Stops | None = Field(None, description="Where to stop; it is not shown.")
    logprobs: Whole | None = Field(None, ge=0, le=5, description="Also the so many most likely tokens of each place.")
    echo: bool | None = Field(False, description="The prompt comes first.")
    stream: bool | None = Field(False, description="Server-sent events, each as soon as its text is certain.")
    stream_options: StreamOptions | None = Field(None, description="Only with stream.")
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    presence_penalty: float | None = Field(0, ge=-2, le=2, description="Only 0 is supported.")
    frequency_penalty: float | None = Field(0, ge=-2, le=2, description="Only 0 is supported.")
    suffix: str | None = Field(None, description="Not supported.")


class EmbeddingRequest(OpenAIRequest):
    """Texts to turn into vectors."""

    input: Texts
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="base64 is of little-endian float32, and shorter."
    )
    dimensions: Whole | None = Field(None, ge=1, description="Only the model's own are supported.")


class ModelCard(BaseModel):
    """One that can be asked; `task` is what it was made for."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "heedful"
    task: str


class ModelList(BaseModel):
    """All of them."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Logprobs(BaseModel):
    """One entry for each token of the text. The first token of an echoed prompt has no probability.

    A token that is a part of a character goes by its name; `text_offset` counts characters of the choice's text.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """One completion, or the next bit of it; `finish_reason` comes with its last."""

    index: int
    text: str
    logprobs: Logprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class Usage(BaseModel):
    """Tokens read and written. A completion's count has all that the model wrote: an end, or a stop, too."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(BaseModel):
    """The answer to a request for completions, or one event of it."""

    model_config = ConfigDict(protected_namespaces=())

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


class Embedding(BaseModel):
    """A vector, as numbers or as base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsage(BaseModel):
    """Tokens read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    """In the order of the inputs."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage
