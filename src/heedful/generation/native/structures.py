"""The structures of layers.c, field by field."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_float, c_int64, c_void_p


class CMatrix(Structure):
    """A packed matrix."""

    _fields_ = (
        ("n_in", c_int64),
        ("n_out", c_int64),
        ("bits", c_int64),
        ("weights", c_void_p),
        ("scales", c_void_p),
        ("bias", c_void_p),
    )


class CNorm(Structure):
    """A norm."""

    _fields_ = (("kind", c_int64), ("weight", c_void_p), ("bias", c_void_p), ("eps", c_float))


class CLayer(Structure):
    """The matrices and norms of a layer."""

    _fields_ = (
        ("inward", CMatrix),
        ("out", CMatrix),
        ("cross_query", CMatrix),
        ("cross_out", CMatrix),
        ("wide", CMatrix),
        ("narrow", CMatrix),
        ("norms", CNorm * 3),
    )


class CStack(Structure):
    """The layers, and what all of them share."""

    _fields_ = (
        ("n_layers", c_int64),
        ("d_model", c_int64),
        ("n_heads", c_int64),
        ("n_kv_heads", c_int64),
        ("d_head", c_int64),
        ("norm_first", c_int64),
        ("activation", c_int64),
        ("gated", c_int64),
        ("n_turned", c_int64),
        ("paired", c_int64),
        ("scale", c_float),
        ("cross_scale", c_float),
        ("layers", POINTER(CLayer)),
        ("entry", CNorm),
        ("last", CNorm),
    )


class CRows(Structure):
    """Which rows run, and where their keys and values are."""

    _fields_ = (
        ("n_rows", c_int64),
        ("n_slots", c_int64),
        ("n_beams", c_int64),
        ("sequence", c_void_p),
        ("slot", c_void_p),
        ("first", c_void_p),
        ("end", c_void_p),
        ("origin", c_void_p),
        ("n_sequences", c_int64),
        ("keys", c_void_p),
        ("values", c_void_p),
        ("bias", c_void_p),
        ("bias_width", c_int64),
        ("longest", c_int64),
        ("cosines", c_void_p),
        ("sines", c_void_p),
        ("memory", c_void_p),
        ("n_memory", c_int64),
        ("source", c_void_p),
        ("n_source", c_void_p),
    )
