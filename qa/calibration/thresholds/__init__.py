"""Thresholds from labelled answers, certified or by cost; nothing here is stored."""

from .choice import CALIBRATABLE, calibrate, choose_by_cost
from .values import Certified, CostChoice, Method, NotCertified, Tested
