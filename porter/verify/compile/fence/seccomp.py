"""seccomp: system calls that the process may not make, refused by Linux with EPERM. x86-64 and 64-bit Arm.

It lists what is forbidden and not what is allowed: which calls a compiler makes changes with every version of its
libraries; those that open the way to other processes, to the network or to the system itself are few and known.
Numbers: the tables of the kernel (asm/unistd.h).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

# x86-64, 64-bit Arm; None: the architecture has no such call.
_FORBIDDEN: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "sendto": (44, 206), "sendmsg": (46, 211),
    "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199), "accept4": (288, 242), "sendmmsg": (307, 269),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "setrlimit": (160, 164), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "open_by_handle_at": (304, 265),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "sethostname": (170, 161), "setdomainname": (171, 162), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "acct": (163, 89), "quotactl": (179, 60), "personality": (135, 92), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "msgget": (68, 186), "semget": (64, 190), "shmget": (29, 194),
    "mq_open": (240, 180), "iopl": (172, None), "ioperm": (173, None),
    # what belongs to a file beside its content: Landlock knows nothing of it, whatever folder the file is in
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466), "file_setattr": (469, 469),
    # how the system treats other processes, or this one
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "sched_setaffinity": (203, 122), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "setpgid": (109, 154),
    "setsid": (112, 157), "kcmp": (312, 272), "process_mrelease": (448, 448),
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "capset": (126, 91),
    "vhangup": (153, 58), "syslog": (103, 116), "nfsservctl": (180, 42), "lookup_dcookie": (212, 18),
    "name_to_handle_at": (303, 264), "inotify_init": (253, None), "inotify_init1": (294, 26),
}  # fmt: skip
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column above, AUDIT_ARCH_*
_CLONE, _CLONE3, _KILL, _TGKILL, _PRLIMIT = (56, 220), (435, 435), (62, 129), (234, 131), (302, 261)
_IOCTL = (16, 29)
_FILE_FLAGS = (0x40086602, 0x401C5820)  # FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR: need no more than a file open for reading
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000  # first number of the other system call table of x86-64

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER, _PR_GET_SECCOMP = 38, 22, 2, 21


def has_seccomp() -> bool:
    """Whether this system takes filters that this module knows to write."""
    if not sys.platform.startswith("linux") or platform.machine() not in _MACHINES:
        return False
    return ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def forbid_calls() -> bool:
    """No network, no new processes (threads may be), no signals to others, no raised limits, no changes of what files
    are beside their content. False: not possible here.

    Holds for this thread and all that it starts; cannot be undone.
    """
    if not has_seccomp():
        return False
    program = _program(platform.machine(), os.getpid())
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero):
        return False
    return not libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), filters, zero, zero)


_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def _program(machine: str, pid: int) -> list[_Instruction]:
    column, architecture = _MACHINES[machine]
    refuse: _Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    allow: _Instruction = (_RETURN, 0, 0, _ALLOW)
    found: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE), (_JUMP_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER), (_JUMP_AT_LEAST, 0, 1, _X32), refuse,
    ]  # fmt: skip
    for numbers in _FORBIDDEN.values():
        number = numbers[column]
        if number is not None:
            found += [(_JUMP_EQUAL, 0, 1, number), refuse]
    # clone3 has its flags in memory, where a filter cannot look: libraries then fall back to clone
    found += [(_JUMP_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    found += [
        (_JUMP_EQUAL, 0, 4, _CLONE[column]), (_LOAD, 0, 0, _ARGUMENTS), (_JUMP_SET, 1, 0, _CLONE_THREAD), refuse, allow,
    ]  # fmt: skip
    for numbers in (_KILL, _TGKILL):
        found += [(_JUMP_EQUAL, 0, 4, numbers[column]), (_LOAD, 0, 0, _ARGUMENTS), (_JUMP_EQUAL, 1, 0, pid), refuse,
                  allow]  # fmt: skip
    found += [
        (_JUMP_EQUAL, 0, 5, _IOCTL[column]), (_LOAD, 0, 0, _ARGUMENTS + 8), (_JUMP_EQUAL, 2, 0, _FILE_FLAGS[0]),
        (_JUMP_EQUAL, 1, 0, _FILE_FLAGS[1]), allow, refuse,
    ]  # fmt: skip
    # prlimit64 reads limits, and sets them where its third argument is not null
    found += [
        (_JUMP_EQUAL, 0, 6, _PRLIMIT[column]), (_LOAD, 0, 0, _ARGUMENTS + 16), (_JUMP_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _ARGUMENTS + 20), (_JUMP_EQUAL, 0, 1, 0), allow, refuse,
    ]  # fmt: skip
    return [*found, allow]
