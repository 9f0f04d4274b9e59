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
    """This table describes the model and its local training."""

    model: Annotated[str, named(MODELS), known(MODELS)]
    """This is the name of the model: 'mlp', 'softmax', 'cnn', 'pooled_cnn', 'series_cnn', 'resnet', 'gru',
    'regression', or a plugin's."""
    layer_sizes: tuple[LayerSize, ...] = Field(min_length=2)
    """The layers have this many units, inputs first. All models but 'mlp' and 'regression' take two numbers: inputs and
    classes."""
    image_shape: tuple[LayerSize, LayerSize, LayerSize] | None = None
    """Convolutions and features need the shape of an input: height, width and colours, or for a series samples, 1 and
    measurements."""
    features: Annotated[str, named(FEATURES), known(FEATURES)] = "none"
    """The model sees these features: 'none' (the inputs), 'scattering' (every device computes them once), or a
    plugin's."""
    activation: Activation = "relu"
    """Hidden layers apply this function. Bounded ones such as 'tanh' keep gradients short, which helps private
    training."""
    channels: tuple[LayerSize, LayerSize] = (8, 16)
    """The two convolutions have this many channels. For 'resnet' these are two stages (a third has twice as many). For
    'gru' they are input and state."""
    l2: NonNegative = 0.0
    """Half the squared length of the parameters is added to the loss with this weight. It makes 'softmax' strongly
    convex."""
    bits_per_parameter: Annotated[int, *whole(1, 64)]
    """Plans charge this many bits for a parameter on the air, unless update_bits says what is sent."""
    update_bits: Literal[8, 32] = 32
    """Devices send each value of an update or a gradient in this many bits: 32 as computed, or 8 with random, unbiased
    rounding."""
    learning_rate: Positive
    """Local training has this step size in the first round (eta in the paper)."""
    rate_decay: Annotated[float, *one(Limit(NUMBER, 0.0, 1.0))] = 1.0
    """The learning rate is multiplied by this factor from round to round. Default: 1, which keeps it constant."""
    optimizer: OptimizerName = "sgd"
    """This optimizer turns gradients into steps: 'sgd' (as in the paper), 'momentum' or 'adam'. Its state is reset in
    every round."""
    momentum: Annotated[float, *one(Limit(NUMBER, 0.0, 0.9999, low_allowed=True))] = 0.9
    """The optimizers 'momentum' and 'adam' keep this share of the last step's direction in the next."""
    batch_size: Annotated[int, *whole(1, 10_000_000)]
    """One local iteration uses this many samples."""
    views: Annotated[int, *whole(1, 25)] = 1
    """Training uses the mean loss of this many views of an image, each moved by up to 2 pixels. Default: 1, the image
    itself."""
    mirrored_views: bool = False
    """If true, every second view is a mirror image."""
    gradient_weight: NonNegative
    """The mean gradient has this weight in the local problem (xi in the paper)."""
    gradient_exchange: bool
    """If true, devices exchange gradients before training. If false, they do plain local training."""
    precision: Precision = "float32"
    """Matrix products on a GPU have this precision. 'tf32' and 'bf16' are faster and less exact. A CPU always computes
    in float32."""
    smoothness: Positive | None = None
    """This is the Lipschitz constant of the gradient (L in the paper), if it is known. Plans then bound the local
    accuracy."""
    strong_convexity: Positive | None = None
    """This is the strong convexity (mu in the paper), if it is known. It has to be given together with smoothness."""
    local_accuracy: Annotated[float, *one(Limit(NUMBER, 1e-12, 1.0 - 1e-12, low_allowed=True))] | None = None
    """Devices do at least the iterations that Theorem 1 asks for this accuracy (Phi in the paper). The theorem is about
    convex losses and full gradients."""
    convergence: Literal["corrected", "printed"] = "corrected"
    """Theorem 1 is used in this form: 'corrected' is what can be proved, 'printed' is what the paper prints."""
    first_model: Literal["random", "zero"] = "random"
    """Training starts from this model: 'random' draws it, 'zero' sets all values to zero as Algorithm 1 prints it."""

    late_rounds: Annotated[int, *whole(0, 1_000)] = 0
    """An update that missed the deadline is still used up to this many rounds later. With 0 it is dropped."""
    late_decay: NonNegative = 0.5
    """Late updates have the weight (1 + age in rounds) to the power of minus this number. FedBuff uses 0.5."""

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
