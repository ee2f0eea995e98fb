"""The joint probe: one confidence from all signals of an answer together."""

from probes.joint.files import joint_files, joint_from
from probes.joint.regression import JointProbe, JointSettings, fit_joint

__all__ = ["JointProbe", "JointSettings", "fit_joint", "joint_files", "joint_from"]
