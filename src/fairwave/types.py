"""Array types that signatures speak: one device's number, or one number per device.

Device code takes `Scalar`, access-point code takes `PerDevice`: the signature is the paper's information
structure. The leading space in `" device"` keeps the linter's undefined-name check usable.
"""

from __future__ import annotations

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Scalar = Float[Array, ""]
Count = Int[Array, ""]
Flag = Bool[Array, ""]
PerDevice = Float[Array, " device"]
FlagPerDevice = Bool[Array, " device"]
Params = Float[Array, " param"]
UpdatePerDevice = Float[Array, "device param"]
Key = PRNGKeyArray
