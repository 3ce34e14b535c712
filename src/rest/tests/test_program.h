/* test_program.h - programs on other stacks, run beside a test on its loop. */
#ifndef DV_REST_TEST_PROGRAM_H
#define DV_REST_TEST_PROGRAM_H

#include <sys/types.h>

#include "base/buf.h"
#include "rest/tests/test_rest_fixture.h"

struct program {
    struct fixture *fixture;
    pid_t pid; /* -1: it has been waited for */
    struct dv_poll *poll;
    int in; /* closed, it is told to end */
    int out;
    struct dv_buf output;
    bool is_closed; /* its output */
    int status;     /* as a shell has it */
};

/* Skips the test when there is no such program. `argv` ends with NULL. */
void program_start(struct program *program, struct fixture *fixture, const char *const *argv);
/* The same for Python, with the script's text and up to three arguments. */
void program_start_python(struct program *program, struct fixture *fixture, const char *script,
                          const char *const args[3]);
/* A script as a client of the fixture's server under TLS. */
void program_start_client(struct program *program, struct fixture *fixture, const char *script);
/* Runs the loop until the text is in its output. */
void program_expect(struct program *program, const char *text);
/* Runs the loop until it has ended. */
void program_wait(struct program *program);
/* Closes its input, waits, gives its memory back. */
void program_end(struct program *program);

/* Waits first, and fails the test when it has failed. */
void program_end_well(struct program *program);

/* In a file of its own that is gone with the process: its path, in the fixture's arena. */
const char *text_file(struct fixture *fixture, dv_str text);

/* What the scripts of clients begin with. */
#define PYTHON_CONNECT                                                                             \
    "import sys, ssl, socket, http.client, time\n"                                                 \
    "port, ca = int(sys.argv[1]), sys.argv[2]\n"                                                   \
    "context = ssl.create_default_context(cafile=ca)\n"                                            \
    "def connect():\n"                                                                             \
    "    raw = socket.create_connection(('127.0.0.1', port), timeout=20)\n"                        \
    "    return context.wrap_socket(raw, server_hostname='localhost')\n"                           \
    "def read_to(sock, end):\n"                                                                    \
    "    got = b''\n"                                                                              \
    "    while not got.endswith(end):\n"                                                           \
    "        part = sock.recv(65536)\n"                                                            \
    "        if not part: raise EOFError(got)\n"                                                   \
    "        got += part\n"                                                                        \
    "    return got\n"

#endif
