"""The model and how a device trains it."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fairwave.extensions import FEATURES, MODELS
from fairwave.scenario.group import Group
from fairwave.scenario.names import known, named
from fairwave.scenario.quantity import Limit, NonNegative, Positive, one, whole
from fairwave.units import NUMBER

Precision = Literal["float32", "tf32", "bf16"]
OptimizerName = Literal["sgd", "momentum", "adam"]
Activation = Literal["relu", "tanh", "elu", "gelu"]
VALUES_PER_STEP = 256
"""Values of an update in 8 bits that share a step, whose exponent takes a byte."""
LayerSize = Annotated[int, *whole(1, 1_000_000)]


class Learning(Group):
    """The model and its local training."""

    model: Annotated[str, named(MODELS), known(MODELS)]
    """Name: 'mlp', 'softmax', 'cnn', 'pooled_cnn', 'series_cnn', 'resnet', 'gru', 'regression', or a plugin's."""
    layer_sizes: tuple[LayerSize, ...] = Field(min_length=2)
    """Units per layer, input first; two for all but 'mlp' and 'regression': inputs and classes."""
    image_shape: tuple[LayerSize, LayerSize, LayerSize] | None = None
    """Height, width and colours of an input, for convolutions and features; of a series: samples, 1, measurements."""
    features: Annotated[str, named(FEATURES), known(FEATURES)] = "none"
    """What the model sees: 'none' (inputs as they are), 'scattering' (computed once by every device), or a plugin's."""
    activation: Activation = "relu"
    """What hidden layers apply; bounded ones such as 'tanh' keep gradients short, which helps private training."""
    channels: tuple[LayerSize, LayerSize] = (8, 16)
    """Channels of two convolutions; in 'resnet' of two stages (a third has twice as many); in 'gru' input and state."""
    l2: NonNegative = 0.0
    """Weight of half the squared length of the parameters in the loss; makes 'softmax' strongly convex."""
    bits_per_parameter: Annotated[int, *whole(1, 64)]
    """Bits that plans charge for a parameter on the air, unless update_bits says what is sent."""
    update_bits: Literal[8, 32] = 32
    """Bits of a value in updates and gradients that devices send: 32 as computed, 8 rounded at random (unbiased)."""
    learning_rate: Positive
    """Step size eta of local training, in the first round."""
    rate_decay: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] = 1.0
    """Factor by which the learning rate shrinks from round to round. Default: 1, it stays."""
    optimizer: OptimizerName = "sgd"
    """How steps follow from gradients: 'sgd' (the paper's), 'momentum' or 'adam', each begun anew in every round."""
    momentum: Annotated[float, *one(Limit(NUMBER, 0.0, 0.9999, low_allowed=True))] = 0.9
    """Share of the last step's direction kept in the next; for 'momentum' and 'adam'."""
    batch_size: Annotated[int, *whole(1, 10_000_000)]
    """Samples per local iteration."""
    views: Annotated[int, *whole(1, 25)] = 1
    """Views of an image, moved by up to 2 pixels, whose mean loss is trained on. Default: 1, the image alone."""
    mirrored_views: bool = False
    """Every second view is a mirror image."""
    gradient_weight: NonNegative
    """Weight xi of the mean gradient in the local problem."""
    gradient_exchange: bool
    """Devices exchange gradients before training; without it, plain local training."""
    precision: Precision = "float32"
    """Precision of matrix products on a GPU: 'tf32' and 'bf16' are faster and coarser. A CPU computes in float32."""
    smoothness: Positive | None = None
    """Lipschitz constant L of the gradient, if known: plans then bound the local accuracy."""
    strong_convexity: Positive | None = None
    """Strong convexity mu, if known; needed together with smoothness."""
    local_accuracy: Annotated[float, *one(Limit(NUMBER, 1e-12, 1.0 - 1e-12, low_allowed=True))] | None = None
    """Accuracy Phi: devices do at least what Theorem 1 asks for it, which is about convex losses and full gradients."""
    convergence: Literal["corrected", "printed"] = "corrected"
    """Form of Theorem 1: what can be proved, or what the paper prints."""
    first_model: Literal["random", "zero"] = "random"
    """The model that training starts from: drawn, or all zeros as Algorithm 1 prints it."""

    late_rounds: Annotated[int, *whole(0, 1_000)] = 0
    """Rounds after its own in which an update that missed the deadline is still used; 0: it is dropped."""
    late_decay: NonNegative = 0.5
    """How fast the weight of late updates falls: (1 + age in rounds) to the power of minus this; FedBuff has 0.5."""

    @model_validator(mode="after")
    def _parameters_fit_the_model(self) -> Learning:
        objection = FEATURES[self.features].objection(self) or MODELS[self.model].objection(self)
        if objection:
            raise ValueError(objection)
        return self

    def num_parameters(self) -> int:
        """Numbers in the model."""
        return int(MODELS[self.model].num_parameters(self))

    def upload_bits(self) -> int:
        """Bits of one update on the air: with update_bits = 8, values and steps as they are sent."""
        values = self.num_parameters()
        return 8 * (values + num_steps(values)) if self.update_bits == 8 else values * self.bits_per_parameter

    @model_validator(mode="after")
    def _views_are_of_images(self) -> Learning:
        if self.views == 1:
            return self
        if self.features != "none":
            raise ValueError(
                f"views {self.views} with features '{self.features}', which devices compute once; set views to 1, or "
                "features to 'none'"
            )
        if self.image_shape is None or math.prod(self.image_shape) != self.layer_sizes[0]:
            raise ValueError(
                f"views {self.views} of {self.layer_sizes[0]} inputs need image_shape; give height, width and colours, "
                "such as [28, 28, 1]"
            )
        return self

    @model_validator(mode="after")
    def _constants_agree(self) -> Learning:
        if (self.smoothness is None) != (self.strong_convexity is None):
            raise ValueError("smoothness and strong_convexity go together; give both or neither")
        if (
            self.smoothness is not None
            and self.strong_convexity is not None
            and self.strong_convexity > self.smoothness
        ):
            raise ValueError(
                f"strong_convexity {self.strong_convexity:g} exceeds smoothness {self.smoothness:g}; lower it"
            )
        if self.local_accuracy is not None and self.smoothness is None:
            raise ValueError(
                f"local_accuracy {self.local_accuracy:g} needs the constants of Theorem 1; give smoothness and "
                "strong_convexity, or leave it out"
            )
        return self


def num_steps(values: int) -> int:
    """Steps that are sent with so many values in 8 bits."""
    return -(-values // VALUES_PER_STEP)
