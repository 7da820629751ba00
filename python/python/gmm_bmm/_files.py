"""A pass in model files, pickles and shards."""

from __future__ import annotations

import json
from numbers import Integral
from os import PathLike

import numpy as np

from gmm_bmm import _core

FIXED = (
    "n_components",
    "covariance_type",
    "algorithm",
    "effort",
    "start_rows",
    "keep_rows",
    "prior_strength",
    "dequantize",
)
"""Parameters that have no effect on a pass after its first row."""

BEGINNING = ("weights_init", "means_init", "precisions_init")
"""Arrays that a new pass begins from, and which a model file does not have."""


class Resumable:
    """The methods of an estimator that save and show its pass, and take one that began elsewhere."""

    def to_bytes(self) -> bytes:
        """The model file of the command ``gmm-bmm``, as bytes."""
        self._require_fit()
        return self._fit.to_bytes(self._parameters_json())

    def save(self, path: str | PathLike) -> None:
        """Writes the model file of the command ``gmm-bmm``. The file appears whole or not at all.

        It keeps all parameters, except that a RandomState instance becomes the seed that was drawn from it.
        """
        self._require_fit()
        self._fit.save(path, self._parameters_json())

    def to_html(self) -> str:
        """A page of HTML to look at, which needs neither a network nor other files.

        It shows the clusters with their weights, a profile of each against all rows, a plot of two columns that are chosen by a click,
        the course of the score with revisions and changes of the data, and findings. It contains a few hundred of the learned rows.
        """
        self._require_fit()
        return self._fit.to_html(self.cluster_overlap, self.n_clusters)

    @classmethod
    def load(cls, path: str | PathLike):
        """Reads a model file, written by ``save`` or by the command. ``partial_fit`` resumes from it."""
        return cls._of_file(_core.Fit.load(path))

    @classmethod
    def from_bytes(cls, data: bytes):
        """Reads what ``to_bytes`` returned."""
        return cls._of_file(_core.Fit.from_bytes(data))

    @classmethod
    def _of_file(cls, fit: _core.Fit):
        known = cls._get_param_names()
        saved = json.loads(fit.parameters_json() or "{}")
        saved = {name: tuple(value) if isinstance(value, list) else value for name, value in saved.items()}
        estimator = cls._of(fit, **{name: value for name, value in saved.items() if name in known})
        if saved:
            estimator._validate_params()
        return estimator

    @classmethod
    def _of(cls, fit: _core.Fit, **parameters):
        """The estimator of a pass that began elsewhere. Parameters that are not given are those of the pass."""
        estimator = cls(**{**fit.settings(), **parameters})
        estimator._begin(fit)
        estimator.n_features_in_ = fit.dim
        if fit.names is not None:
            estimator.feature_names_in_ = np.asarray(fit.names, dtype=object)
        return estimator

    def _begin(self, fit: _core.Fit) -> None:
        """Takes a pass, and notes the parameters that it keeps from now on."""
        self._begun_with = {name: getattr(self, name) for name in FIXED}
        self._fit = fit

    def _parameters_json(self) -> str | None:
        """The parameters that a model file does not tell otherwise, if there are any."""
        told = {**type(self)().get_params(), **self._fit.settings()}
        own = {**self.get_params(), **self._begun_with}
        untold = {name: value for name, value in own.items() if name not in BEGINNING and value != told[name]}
        if isinstance(self.random_state, np.random.RandomState):
            untold.pop("random_state", None)
        plain = lambda number: int(number) if isinstance(number, Integral) else float(number)
        return json.dumps(untold, default=plain) if untold else None

    def shard(self, *, keep_rows: int | None = None):
        """An estimator that learns one shard from this mixture as the common prior. See ``gmm_bmm.merge``.

        It has the parameters of this one, and as many components. It keeps ``keep_rows`` rows, by default as many as this one:
        fewer make it smaller to send.
        """
        self._require_fit()
        parameters = self.get_params()
        if keep_rows is not None:
            parameters["keep_rows"] = keep_rows
        return self._of(self._fit.begin_shard(keep_rows), **parameters)

    def __getstate__(self):
        state = super().__getstate__()
        if "_fit" in state:
            state = {**state, "_fit": state["_fit"].to_bytes()}
        return state

    def __setstate__(self, state):
        if "_fit" in state:
            state = {**state, "_fit": _core.Fit.from_bytes(state["_fit"])}
            # Pickles of version 0.2 lack them.
            state.setdefault("prior_strength", "auto")
            state.setdefault("covariance_type", "full")
            for name in BEGINNING:
                state.setdefault(name, None)
            state.setdefault("warm_start", False)
            state.setdefault("verbose", 0)
            state.setdefault("_begun_with", {name: state[name] for name in FIXED})
        super().__setstate__(state)
