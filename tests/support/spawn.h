/* spawn.h - starts a program beside a test or a benchmark; waitpid tells when it has ended. */
#ifndef DV_SPAWN_H
#define DV_SPAWN_H

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

/* The program's id; -1 with errno when it did not start. `argv` ends with NULL, its first is found
 * along PATH. `fds` are its first three descriptors, with -1 for /dev/null. */
static inline pid_t spawn_program(const char *const *argv, const int fds[3])
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int error;

    (void)posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++) {
        if (fds[i] < 0)
            (void)posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
        else
            (void)posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    }
    error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return error == 0 ? pid : -1;
}

#endif
