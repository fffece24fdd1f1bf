"""The engine: tasks find each other by names of Ray's actors, which are their addresses."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import AuthenticationError
from typing import Any, Final, TypeVar

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from opdock.plugin import Handle, Packet, errors
from opdock_ray import host, link
from opdock_ray.asking import Asking, Over
from opdock_ray.mailbox import Letter, Mailbox

__all__ = ["RayEngine"]

_NAMESPACE: Final = "opdock"
_SILENCE: Final = "OPDOCK_RAY_SILENCE"
_DEFAULT_SILENCE: Final = 60.0
_MOST: Final = 10_000  # packets that a task works on at once: each may wait for another
_FAREWELL: Final = 15.0
_LOOK: Final = 0.2
_T = TypeVar("_T")
_log = logging.getLogger("opdock.cluster")
_asking: Final = Asking()


class RayEngine:
    """This process's access to Ray, which it joins, or starts if nobody has."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ways: dict[Any, _Way] = {}

    def _join(self) -> None:
        """Joins the Ray of `RAY_ADDRESS`, or of this machine, and has one started if there is none.

        Raises:
            UnavailableError: Ray does not answer, or does not start.
            FailedPreconditionError: the process was forked from one that had joined Ray.
        """
        if _asking.inherited:
            raise errors.FailedPreconditionError(
                None, None,
                "This process was forked from one that had joined Ray, which works by threads that "
                "a child lacks. Start it with multiprocessing's method 'spawn'.",
            )  # fmt: skip
        with self._lock:
            try:
                _asking.check()
                if ray.is_initialized():
                    return
                if os.environ.get("RAY_ADDRESS"):
                    _init()
                    return
                host.use()
                with host.alone():
                    try:
                        _init()
                    except ConnectionError:
                        host.start()
                        _init()
            except (ConnectionError, RayError, RuntimeError, Over) as e:
                where = os.environ.get("RAY_ADDRESS") or "this machine"
                raise errors.UnavailableError(
                    None, None, f"Ray does not answer (RAY_ADDRESS: {where}): {e}"
                ) from e

    def serve(self, address: str, handle: Handle) -> _Serving:
        """Opens the task of an address: an actor of that name, and a thread that gets its mail.

        Raises:
            UnknownError: another process has the address.
            InvalidArgumentError: OPDOCK_RAY_SILENCE is no number of seconds.
        """
        self._join()
        silence = _silence()
        workers = ThreadPoolExecutor(_MOST, thread_name_prefix="opdock-task")
        entrance = link.Entrance(handle, workers) if link.possible() else None
        door = _node(), None if entrance is None else entrance.door

        def mailbox() -> Any:
            return _mailbox(address, silence, door)

        try:
            return _Serving(address, mailbox, handle, workers, entrance)
        except errors.UnknownError:
            if entrance is not None:
                entrance.close()
            raise

    def connect(self, address: str) -> _Way:
        """The way to the task of an address: one for all who need it.

        Raises:
            UnavailableError: nobody has opened it, or not yet.
        """
        self._join()
        with self._lock:
            over = [way for way in self._ways.values() if not way.open]
            self._ways = {key: way for key, way in self._ways.items() if way.open}
        try:
            with _asking():
                for way in over:
                    way.forget()
                actor = ray.get_actor(address, namespace=_NAMESPACE)
        except (ValueError, RayError, Over) as e:
            raise errors.UnavailableError(None, None, f"Ray has no actor {address!r}") from e
        with self._lock:
            found = self._ways.get(actor._actor_id)
            if found is None:
                found = self._ways[actor._actor_id] = _Way(address, actor)
            return found


def _silence() -> float:
    """Seconds after which a task that does not answer counts as gone."""
    text = os.environ.get(_SILENCE, "") or str(_DEFAULT_SILENCE)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if seconds > 0:
        return seconds
    told = f"{_SILENCE} takes a number of seconds, got {text!r}"
    raise errors.InvalidArgumentError(None, None, told)


def _mailbox(address: str, silence: float, door: Any) -> Any:
    """An actor that takes the mail of an address.

    Raises:
        UnknownError: another process has the address.
    """
    # It waits for mail and passes it on: it needs no processor of its own.
    actor = ray.remote(Mailbox).options(
        name=address, namespace=_NAMESPACE, num_cpus=0, max_concurrency=_MOST, max_restarts=0,
        max_task_retries=-1,  # while it is there: what comes twice is known
        scheduling_strategy=NodeAffinitySchedulingStrategy(_node(), soft=False),
    )  # fmt: skip
    until = time.monotonic() + _FAREWELL
    while True:
        try:
            with _asking():
                return actor.remote(silence, min(silence / 4, 5.0), door)
        except ValueError as e:
            # Of a task that has just been killed Ray knows the actor for a while.
            if time.monotonic() > until:
                raise errors.UnknownError(
                    None, None,
                    f"Could not start a server at {address}: another process has it ({e})",
                ) from None  # fmt: skip
            time.sleep(_LOOK)


def _init() -> None:
    """Joins Ray; what SIGTERM does to the process is not Ray's to say."""
    before = signal.getsignal(signal.SIGTERM)
    ray.init(address="auto", namespace=_NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _node() -> str:
    """Ray's name of this machine."""
    name: str = ray.get_runtime_context().get_node_id()
    return name


class _Way:
    """The way to one task: its mailbox, and a link as soon as there is one.

    Attributes:
        open: whether the task was there when it was last heard of.
    """

    def __init__(self, address: str, actor: Any) -> None:
        self._address, self._actor = address, actor
        self._link: link.Link | None = None
        self._died = False
        self.open = True
        if link.possible():
            threading.Thread(target=self._join, daemon=True, name="opdock-link").start()

    def _join(self) -> None:
        """Links this process and the task's, if both are of one machine, until one of them ends."""
        made = self._linked()
        if made is not None:
            made.listen()
            self._unlink(made, None)

    def _linked(self) -> link.Link | None:
        try:
            with _asking():
                asked, here = self._actor.door.remote(), _node()
            node, door = _asking.get(asked)
            if node != here or not door:
                return None
            self._link = made = link.Link(door)
            with _asking():
                self._actor.watch.remote().future().add_done_callback(self._silent)
            return made
        except (RayError, OSError, EOFError, AuthenticationError, Over) as e:
            _log.debug("%s is reached by its mailbox alone: %s", self._address, e)
            return None

    def _silent(self, watch: Future[None]) -> None:
        """The task has not been heard of for too long, or has ended."""
        made, error = self._link, watch.exception()
        if made is not None:
            self._unlink(made, error)

    def _unlink(self, made: link.Link, error: BaseException | None) -> None:
        """From now on the mailbox tells what becomes of the task."""
        self._link = None
        made.break_off(self._gone(error))

    def ask(self, packet: Packet) -> Future[Packet]:
        """Brings a packet to the task; its answer, or UnavailableError."""
        made = self._link
        if made is not None:
            return made.ask(packet)
        try:
            with _asking():
                sent = self._actor.post.remote(*packet).future()
        except (RayActorError, Over) as e:
            raise self._gone(e) from None
        return self._following(sent, lambda found: Packet(*found))

    def tell(self, packet: Packet) -> Future[None] | None:
        """Brings a packet to the task; its arrival, where that is not the link's to tell."""
        made = self._link
        if made is not None:
            made.tell(packet)
            return None
        try:
            with _asking():
                sent = self._actor.leave.remote(*packet).future()
        except (RayActorError, Over) as e:
            raise self._gone(e) from None
        return self._following(sent, lambda _: None)

    def _following(self, found: Future[Any], made: Callable[[Any], _T]) -> Future[_T]:
        """What is made of what Ray's actor answers, or UnavailableError."""
        answer: Future[_T] = Future()

        def arrived(found: Future[Any]) -> None:
            try:
                answer.set_result(made(found.result()))
            except Exception as e:
                answer.set_exception(self._gone(e))

        found.add_done_callback(arrived)
        return answer

    def forget(self) -> None:
        """Has Ray look for the name anew: it would go on giving the dead actor that it knows."""
        if self._died:
            ray.kill(self._actor)

    def _gone(self, error: BaseException | None) -> errors.OpError:
        self._died = self._died or isinstance(error, ActorDiedError)
        self.open = False
        cause = getattr(error, "cause", None)
        why = str(cause) if isinstance(cause, TimeoutError) else "its process has ended"
        if error is not None and not isinstance(error, (RayError, Over)):
            why = f"{type(error).__name__}: {error}"
        return errors.UnavailableError(
            None, None, f"The task at {self._address} does not answer: {why}."
        )


class _Serving:
    """A task that is open.

    Args:
        address: its own.
        mailbox: makes an actor that takes its mail.
        handle: what it makes of packets.
        workers: who does it.
        entrance: where processes of this machine come in, if they can.

    Raises:
        UnknownError: another process has the address.
    """

    def __init__(
        self, address: str, mailbox: Callable[[], Any], handle: Handle,
        workers: ThreadPoolExecutor, entrance: link.Entrance | None,
    ) -> None:  # fmt: skip
        self._address, self._mailbox, self._handle = address, mailbox, handle
        self._workers, self._entrance = workers, entrance
        self._actor = mailbox()
        self._open = True
        threading.Thread(target=self._work, daemon=True, name="opdock-mail").start()
        _asking.rouses(self._leave)

    def _leave(self) -> None:
        """That no more mail comes is no news to a process that is ending."""
        self._open = False
        self._actor.rouse.remote()

    def close(self) -> None:
        """Lets nobody in any more."""
        _asking.forget(self._leave)
        self._open = False
        if self._entrance is not None:
            self._entrance.close()
        with contextlib.suppress(Over), _asking():
            ray.kill(self._actor)

    def _work(self) -> None:
        number = 1
        while self._open:
            try:
                with _asking():
                    asked = self._actor.take.remote(number)
                letters: list[Letter] = _asking.get(asked)
            except Over:
                return
            except ActorUnavailableError as e:
                _log.warning("%s asks for its mail again: %s", self._address, e)
                time.sleep(_LOOK)
                continue
            except ActorDiedError as e:
                if not self._open or not self._another(e):
                    return
                continue
            except Exception as e:
                # Ray is gone, or this process is ending.
                self._unheard(e)
                return
            number += 1
            for letter in letters:
                self._workers.submit(self._answer, letter)

    def _another(self, error: Exception) -> bool:
        """Opens another mailbox in the place of one that Ray has ended; whether it could."""
        _log.warning("%s gets another mailbox, as Ray has ended the last: %s", self._address, error)
        with _asking():
            ray.kill(self._actor)  # Ray would go on giving the dead one for the name
        while self._open:
            try:
                self._actor = self._mailbox()
                return True
            except errors.UnknownError as e:
                # Ray may know the last one for long, where processors have much else to do.
                if self._taken():
                    self._unheard(e)
                    return False
            except Exception as e:
                self._unheard(e)
                return False
        return False

    def _taken(self) -> bool:
        """Whether an actor that is not the task's own has its address."""
        try:
            with _asking():
                found = ray.get_actor(self._address, namespace=_NAMESPACE)
        except ValueError:
            return False
        return bool(found._actor_id != self._actor._actor_id)

    def _unheard(self, error: Exception) -> None:
        if self._open:
            _log.warning("%s gets no more requests: %s", self._address, error)

    def _answer(self, letter: Letter) -> None:
        number, header, parts = letter
        answer = self._handle(Packet(header, parts))
        with contextlib.suppress(Over), _asking():
            if number:
                self._actor.answer.remote(number, *answer)
