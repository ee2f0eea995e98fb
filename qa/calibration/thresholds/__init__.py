"""Thresholds from labelled answers: with a promise, or by cost. Nothing here is stored."""

from .choice import CALIBRATABLE, calibrate, choose_by_cost
from .values import Certified, CostChoice, Method, NotCertified, Tested
