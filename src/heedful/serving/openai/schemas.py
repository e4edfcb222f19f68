"""The requests and responses of OpenAI's API. A field that is not listed here is refused by its name."""

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
    """Replace pydantic's errors for a union, one for each type, by a single message."""

    def validated(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError(kind, message) from None

    return WrapValidator(validated)


def _as_integer(value: Any) -> Any:
    """Convert 16.0 to 16: JSON has one type of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_as_integer)]
SOME = Field(min_length=1)
Ids = Annotated[list[Annotated[Whole, Field(ge=0, lt=2**31)]], SOME]


def _check_texts(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Check texts or ids without pydantic, which would report an error for each of many thousands."""
    if isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(item, str) for item in value)):
        return value
    several = isinstance(value, list) and value and all(isinstance(ids, list) and ids for ids in value)
    lists = value if several else [value]
    integers = [[_as_integer(item) for item in ids] if isinstance(ids, list) else [] for ids in lists]
    if not all(ids and all(type(item) is int and 0 <= item < 2**31 for item in ids) for ids in integers):
        raise PydanticCustomError(
            "texts", "should be a text, a list of texts, a list of token ids, or a list of such lists; no list empty"
        )
    return integers if several else integers[0]


Texts = Annotated[
    str | Annotated[list[str], SOME] | Ids | Annotated[list[Ids], SOME],
    WrapValidator(_check_texts),  # the types are for the schema alone
]
Stop = Annotated[str, StringConstraints(min_length=1)]
Stops = Annotated[
    Stop | Annotated[list[Stop], Field(max_length=4)],
    _with_message("stop", "should be a text or up to 4 of them, none empty"),
]


class OpenAIRequest(BaseModel):
    """The base of requests. Types are strict: neither "5" nor true is a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str
    user: str | None = Field(None, description="Accepted and ignored.")


class StreamOptions(BaseModel):
    """What a stream contains besides the text."""

    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = Field(None, description="Send one more event at the end, with the usage.")
    include_obfuscation: Literal[False] | None = Field(None, description="Events are never padded.")


class CompletionRequest(OpenAIRequest):
    """A request to continue one or several texts."""

    prompt: Texts | None = Field(None, description="null starts a new document.")
    max_tokens: Whole | None = Field(16, ge=0, description="The most tokens to generate, including the end token.")
    temperature: float | None = Field(1, ge=0, le=2, description="0 always chooses the most likely token.")
    top_p: float | None = Field(1, ge=0, le=1)
    n: Whole | None = Field(1, ge=1, description="Completions of each prompt.")
    best_of: Whole | None = Field(
        None, ge=1, description="Generate this many and return the n with the highest log-probability per token."
    )
    seed: Whole | None = Field(None, ge=-(2**63), lt=2**63, description="The same seed gives the same text.")
    stop: Stops | None = Field(None, description="Stop sequences, which are not part of the text.")
    logprobs: Whole | None = Field(None, ge=0, le=5, description="Include this many most likely tokens per position.")
    echo: bool | None = Field(False, description="Begin the text with the prompt.")
    stream: bool | None = Field(False, description="Send server-sent events, each as soon as its text is final.")
    stream_options: StreamOptions | None = Field(None, description="Only with stream.")
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = None
    presence_penalty: float | None = Field(0, ge=-2, le=2, description="Only 0 is supported.")
    frequency_penalty: float | None = Field(0, ge=-2, le=2, description="Only 0 is supported.")
    suffix: str | None = Field(None, description="Not supported.")


class EmbeddingRequest(OpenAIRequest):
    """A request to turn texts into vectors."""

    input: Texts
    encoding_format: Literal["float", "base64"] | None = Field(
        "float", description="base64 encodes little-endian float32, which is shorter."
    )
    dimensions: Whole | None = Field(None, ge=1, description="Only the size of the model's vectors is supported.")


class ModelCard(BaseModel):
    """A model that is served; `task` is what it was trained for."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "heedful"
    task: str


class ModelList(BaseModel):
    """The list of all models of a server."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class Logprobs(BaseModel):
    """One entry for each token of the text. The first token of an echoed prompt has no logprob.

    A token that is a part of a character has the tokenizer's name; `text_offset` counts characters of the text.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """One completion or the next part of it; `finish_reason` comes with the last part."""

    index: int
    text: str
    logprobs: Logprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class Usage(BaseModel):
    """Numbers of tokens. A completion's number includes the end token or the tokens of a stop sequence."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(BaseModel):
    """The response to a completion request, or one event of it."""

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
    """The number of tokens in all inputs."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(BaseModel):
    """The vectors, in the order of the inputs."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: EmbeddingUsage
