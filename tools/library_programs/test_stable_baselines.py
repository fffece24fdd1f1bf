"""Stable Baselines 2.10.2: agents that learn, are saved and loaded, and act alike."""

import gym
import numpy as np
import pytest
from stable_baselines import A2C, ACER, ACKTR, DQN, PPO2, SAC, TD3


@pytest.mark.parametrize(
    ("kind", "policy", "env", "options", "steps"),
    [
        (PPO2, "MlpPolicy", "CartPole-v1", {"n_steps": 32}, 128),
        (PPO2, "MlpLstmPolicy", "CartPole-v1", {"n_steps": 32, "nminibatches": 1}, 64),
        (A2C, "MlpPolicy", "CartPole-v1", {"n_steps": 8}, 64),
        (ACKTR, "MlpPolicy", "CartPole-v1", {"n_steps": 8}, 64),
        (ACER, "MlpPolicy", "CartPole-v1", {"n_steps": 8, "replay_start": 16}, 64),
        (DQN, "MlpPolicy", "CartPole-v1", {"learning_starts": 20, "prioritized_replay": True}, 120),
        (SAC, "MlpPolicy", "Pendulum-v0", {"learning_starts": 20}, 60),
        (TD3, "MlpPolicy", "Pendulum-v0", {"learning_starts": 20}, 60),
    ],
)  # fmt: skip
def test_agents(kind, policy, env, options, steps, tmp_path):
    model = kind(policy, env, seed=1, **options).learn(steps)
    model.save(str(tmp_path / "agent"))
    loaded = kind.load(str(tmp_path / "agent"))
    seen = gym.make(env).reset()
    if policy == "MlpLstmPolicy":
        seen = np.tile(seen, (model.n_envs, 1))
    acts = [m.predict(seen, deterministic=True)[0] for m in (model, loaded)]
    np.testing.assert_allclose(*acts, rtol=1e-5)
