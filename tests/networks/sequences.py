"""Sequence models: time-first ones, and recurrent layers."""

import warnings

import torch
from tests.networks._entry import SAMPLES, STEPS, Built, Made, numbers, tokens
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

__all__ = ["RECURRENT", "TIME_FIRST"]


class TimeFirstEncoder(nn.Module):
    """Takes ``[B, T, F]``, computes with ``[T, B, C]``, which is torch's default."""

    def __init__(self, layers: int = 2, norm: bool = True) -> None:
        super().__init__()
        self.enter = nn.Linear(4, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        last = nn.LayerNorm(8) if norm else None
        self.encoder = nn.TransformerEncoder(layer, layers, last, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.encoder(self.enter(inputs).transpose(0, 1))
        return self.head(hidden.mean(dim=0))


class TimeFirstMixer(nn.Module):
    """Feed-forward blocks over ``[T, B, C]``, one output per step."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
            for _ in range(3)
        )
        self.head = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.enter(inputs).transpose(0, 1)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        return self.head(hidden).transpose(0, 1)


class TimeFirstLstm(nn.Module):
    """Two recurrent layers with ``batch_first=False``, read at the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTM(4, 8), nn.LSTM(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden, _ = self.second(self.first(inputs.transpose(0, 1))[0])
        return self.head(hidden[-1])


class FlatSteps(nn.Module):
    """Normalises ``[T * B, C]``: steps lead, samples lie inside."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm, self.hidden = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        steps, samples = inputs.shape[1], inputs.shape[0]
        flat = inputs.transpose(0, 1).reshape(steps * samples, -1)
        flat = self.hidden(self.norm(self.enter(flat))).relu()
        return self.head(flat.reshape(steps, samples, -1).mean(dim=0))


class TimeFirstSeq2Seq(nn.Module):
    """torch's own `nn.Transformer`, time-first inside."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        with warnings.catch_warnings():  # torch's, of a fast path that it does not take
            warnings.simplefilter("ignore", UserWarning)
            self.net = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
        self.head = nn.Linear(8, 3)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        coded = self.net(self.words(source.T), self.words(target.T))
        return self.head(coded).transpose(0, 1)


class LastState(nn.Module):
    """Reads the state at the end, not the outputs."""

    def __init__(self, cell: type[nn.LSTM] | type[nn.GRU], both: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(13, 6)
        self.rnn = cell(6, 8, batch_first=True, bidirectional=both)
        self.head = nn.Linear(16 if both else 8, 3)

    def forward(self, words: Tensor) -> Tensor:
        _, state = self.rnn(self.words(words))
        last = state[0] if isinstance(state, tuple) else state
        ends = last.transpose(0, 1).flatten(1)
        return self.head(ends)


class Tagger(nn.Module):
    """A bidirectional LSTM of two layers with an output per token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(13, 6)
        self.rnn = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(10, 4)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.rnn(self.words(words))[0])


class Packed(nn.Module):
    """A GRU over packed sequences of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        padded, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(padded.sum(dim=1) / lengths.unsqueeze(1))


class Cells(nn.Module):
    """A loop over `nn.LSTMCell`."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(4, 8), nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        state = inputs.new_zeros(inputs.shape[0], 8), inputs.new_zeros(inputs.shape[0], 8)
        for step in inputs.unbind(dim=1):
            state = self.cell(step, state)
        return self.head(state[0])


def _seq2seq() -> Built:
    return TimeFirstSeq2Seq(), {"source": tokens(11, STEPS), "target": tokens(11, 5)}


def _packed() -> Built:
    lengths = torch.arange(SAMPLES) % STEPS + 1
    return Packed(), {"inputs": numbers(STEPS, 4), "lengths": lengths}


TIME_FIRST: dict[str, Made] = {
    "time-first transformer": lambda: (TimeFirstEncoder(), numbers(STEPS, 4)),
    "time-first mixer": lambda: (TimeFirstMixer(), numbers(STEPS, 4)),
    "time-first LSTM": lambda: (TimeFirstLstm(), numbers(STEPS, 4)),
    "flattened steps": lambda: (FlatSteps(), numbers(STEPS, 4)),
    "nn.Transformer": _seq2seq,
}
RECURRENT: dict[str, Made] = {
    "LSTM, last state": lambda: (LastState(nn.LSTM), tokens(13, STEPS)),
    "bidirectional GRU": lambda: (LastState(nn.GRU, both=True), tokens(13, STEPS)),
    "LSTM tagger": lambda: (Tagger(), tokens(13, STEPS)),
    "GRU over packed sequences": _packed,
    "LSTM cells": lambda: (Cells(), numbers(STEPS, 4)),
}
