#include "rest/tests/test_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/loop.h"
#include "support/dvtest.h"
#include "support/spawn.h"

/* Real time: only a broken test waits so long. */
#define PATIENCE_MS 30000u

static void on_output(void *ctx, unsigned events)
{
    struct program *program = ctx;
    char bytes[4096];
    ssize_t n = read(program->out, bytes, sizeof(bytes));

    (void)events;
    if (n > 0) {
        dv_buf_add(&program->output, (dv_str){bytes, (size_t)n});
        return;
    }
    program->is_closed = true;
    dv_poll_set(program->poll, 0);
}

void program_start(struct program *program, struct fixture *fixture, const char *const *argv)
{
    int error;
    int in[2];
    int out[2];

    *program = (struct program){.fixture = fixture};
    dv_buf_init(&program->output, 64u << 20);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    program->in = in[1];
    program->out = out[0];
    program->poll = fixture_watch(fixture, program->out, on_output, program);
    program->pid = spawn_program(argv, (int[3]){in[0], out[1], out[1]});
    error = errno;
    (void)close(in[0]);
    (void)close(out[1]);
    if (program->pid < 0 && error == ENOENT) {
        program_end(program);
        skip();
    }
    if (program->pid < 0)
        fail_msg("%s: %s", argv[0], strerror(error));
}

void program_start_python(struct program *program, struct fixture *fixture, const char *script,
                          const char *const args[3])
{
    const char *argv[] = {"python3", "-u", "-c", script, NULL, NULL, NULL, NULL};

    for (size_t i = 0; i < 3 && args[i]; i++)
        argv[4 + i] = args[i];
    program_start(program, fixture, argv);
}

void program_start_client(struct program *program, struct fixture *fixture, const char *script)
{
    char port[8];
    const char *args[3] = {port, text_file(fixture, fixture->ca.cert), NULL};

    (void)snprintf(port, sizeof(port), "%u", fixture->port);
    program_start_python(program, fixture, script, args);
}

struct wait {
    struct program *program;
    dv_str text;
};

static bool has_text(void *ctx)
{
    const struct wait *wait = ctx;
    dv_str output = dv_buf_str(&wait->program->output);

    return dv_str_find(output, wait->text) < output.n;
}

void program_expect(struct program *program, const char *text)
{
    struct wait wait = {program, dv_str_from_c(text)};

    if (!dv_loop_run_until(program->fixture->loop, has_text, &wait, PATIENCE_MS))
        fail_msg("no \"%s\" in \"%.1000s\"; log: %s", text, dv_buf_c(&program->output),
                 dv_buf_c(&program->fixture->log));
}

static bool is_closed(void *ctx)
{
    return ((const struct program *)ctx)->is_closed;
}

void program_wait(struct program *program)
{
    int how;

    if (!dv_loop_run_until(program->fixture->loop, is_closed, program, PATIENCE_MS))
        fail_msg("it has not ended, but said \"%.1000s\"; log: %s", dv_buf_c(&program->output),
                 dv_buf_c(&program->fixture->log));
    if (program->pid < 0)
        return; /* waited for already */
    /* What has closed its output is about to end. */
    assert_int_equal(waitpid(program->pid, &how, 0), program->pid);
    program->pid = -1;
    program->status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

void program_end(struct program *program)
{
    (void)close(program->in);
    if (program->pid > 0)
        program_wait(program);
    fixture_unwatch(program->fixture, program->out);
    dv_buf_fini(&program->output);
}

void program_end_well(struct program *program)
{
    program_wait(program);
    if (program->status != 0)
        fail_msg("it failed: %.2000s", dv_buf_c(&program->output));
    program_end(program);
}

const char *text_file(struct fixture *fixture, dv_str text)
{
    int fd = memfd_create("test", 0); /* for children, too */

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.p, text.n), (ssize_t)text.n);
    return dv_str_to_c(dv_str_printf(fixture->arena, "/proc/%d/fd/%d", (int)getpid(), fd),
                       fixture->arena);
}
