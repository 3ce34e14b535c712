/* kubectl against our sessions: exec over WebSocket or SPDY, port-forward over SPDY, in a WebSocket
 * or not. DAVIT_KUBECTL names another kubectl; without any, the tests are passed over. */
#include "support/dvtest.h"
#include "support/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/defs.h"
#include "upgrade/tests/test_house.h"

#define OUTPUT_BYTES_MAX (64u << 20)

/* Runs a shell command in which $K is kubectl with its server; returns its exit status. */
static int run(const struct house *house, bool has_websockets, const char *command,
               struct dv_buf *output)
{
    const char *kubectl = getenv("DAVIT_KUBECTL");
    char text[2048];
    const char *argv[] = {"bash", "-c", text, NULL};
    FILE *out = tmpfile();
    char bytes[4096];
    int status;
    size_t n;
    pid_t pid;

    assert_non_null(out);
    (void)snprintf(
        text, sizeof(text),
        "export HOME=$(mktemp -d) PATH=$PATH:/usr/local/bin; trap 'rm -rf $HOME' EXIT; "
        "X=%s; command -v $X >/dev/null || exit 77; "
        "export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=%s KUBECTL_PORT_FORWARD_WEBSOCKETS=%s; "
        "K=\"$X --server=http://127.0.0.1:%u\"; %s",
        kubectl ? kubectl : "kubectl", has_websockets ? "true" : "false",
        has_websockets ? "true" : "false", house->port, command);
    pid = spawn_program(argv, (int[3]){-1, fileno(out), fileno(out)});
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    dv_buf_init(output, OUTPUT_BYTES_MAX);
    rewind(out);
    while ((n = fread(bytes, 1, sizeof(bytes), out)) > 0)
        dv_buf_add(output, (dv_str){bytes, n});
    (void)fclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_kubectl(bool has_websockets)
{
    static const struct {
        const char *command;
        int status;
        const char *output;
    } rows[] = {
        {"timeout 60 $K exec p -- echo 2>/dev/null",                           0, "out\n"                   },
        {"timeout 60 $K exec p -- echo 2>&1 >/dev/null",                       0, "err\n"                   },
        {"echo hello | timeout 60 $K exec -i p -- cat",                        0, "hello\n"                 },
        {"head -c 3000000 /dev/zero | timeout 60 $K exec -i p -- cat | wc -c", 0, "3000000\n"               },
        {"timeout 60 $K exec p -- fail 2>/dev/null",                           5, ""                        },
        {"timeout 60 $K exec p -- big | wc -c",                                0, "8388608\n"               },
        {"timeout 60 $K port-forward p 0:80 >$HOME/out & "
         "for i in $(seq 600); do grep -q 127.0.0.1 $HOME/out && break; sleep 0.1; done; "
         "P=$(sed -n 's/.*127.0.0.1:\\([0-9]*\\) .*/\\1/p' $HOME/out); "
         "for i in 1 2 3; do exec 5<>/dev/tcp/127.0.0.1/$P; echo ping $i >&5; read -r -u 5 L; "
         "echo \"$L\"; exec 5>&-; done; kill %1",                     0, "ping 1\nping 2\nping 3\n"},
    };
    struct house house;

    house_open(&house);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_buf output;
        int status = run(&house, has_websockets, rows[i].command, &output);

        if (status == 77) {
            house_close(&house);
            dv_buf_fini(&output);
            skip();
        }
        if (status != rows[i].status || strcmp(dv_buf_c(&output), rows[i].output) != 0)
            fail_msg("%s: status %d: %s", rows[i].command, status, dv_buf_c(&output));
        dv_buf_fini(&output);
    }
    house_close(&house);
}

static void kubectl_works_over_websocket(void **state)
{
    (void)state;
    check_kubectl(true);
}

static void kubectl_works_over_spdy(void **state)
{
    (void)state;
    check_kubectl(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kubectl_works_over_websocket),
        cmocka_unit_test(kubectl_works_over_spdy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
