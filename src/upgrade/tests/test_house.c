#include "upgrade/tests/test_house.h"

#include "support/dvtest.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "upgrade/channels.h"
#include "upgrade/spdy_streams.h"
#include "upgrade/tests/test_visit.h"
#include "upgrade/upgrade.h"
#include "upgrade/websocket.h"

#define HEAD_BYTES_MAX 65536u

/* ---- requests ---- */

struct request {
    char head[HEAD_BYTES_MAX];
    dv_str line;
    dv_str rest; /* the header's fields */
};

static void say(int fd, const char *text)
{
    write_all(fd, dv_str_from_c(text));
}

/* Reads a request's header; what clients send after it waits for the answer. */
static bool read_request(int fd, struct request *request)
{
    size_t n = 0;

    while (n < sizeof(request->head) - 1) {
        if (read(fd, request->head + n, 1) != 1)
            return false;
        request->head[++n] = '\0';
        if (n >= 4 && strcmp(request->head + n - 4, "\r\n\r\n") == 0)
            break;
    }
    request->rest = (dv_str){request->head, n};
    return dv_str_split(&request->rest, '\n', &request->line);
}

/* Gathers the values of all fields of this name. */
static size_t fields_of(const struct request *request, const char *name, dv_str *values, size_t max)
{
    dv_str rest = request->rest;
    dv_str line;
    size_t n = 0;

    while (n < max && dv_str_split(&rest, '\n', &line)) {
        size_t at = dv_str_find_char(line, ':');

        if (dv_str_eq_nocase(dv_str_slice(line, 0, at), dv_str_from_c(name)))
            values[n++] = dv_str_trim(dv_str_slice(line, at + 1, line.n));
    }
    return n;
}

static dv_str field_of(const struct request *request, const char *name)
{
    dv_str value = DV_STR_NONE;

    (void)fields_of(request, name, &value, 1);
    return value;
}

static bool has_text(dv_str text, const char *part)
{
    return dv_str_find(text, dv_str_from_c(part)) < text.n;
}

static enum program program_of(dv_str target)
{
    return has_text(target, "command=cat")    ? RUN_CAT
           : has_text(target, "command=fail") ? RUN_FAIL
           : has_text(target, "command=big")  ? RUN_BIG
                                              : RUN_ECHO;
}

/* ---- answers ---- */

static void answer_websocket(struct visit *visit, const struct request *request, dv_str target)
{
    dv_str protocols[8];
    struct dv_ws_fields fields = {.connection = field_of(request, "connection"),
                                  .upgrade = field_of(request, "upgrade"),
                                  .version = field_of(request, "sec-websocket-version"),
                                  .key = field_of(request, "sec-websocket-key"),
                                  .protocols = protocols};
    enum dv_channel_use use =
        has_text(target, "/exec?") ? DV_CHANNELS_OF_EXEC : DV_CHANNELS_OF_PORT_FORWARD;
    char accept[DV_WS_ACCEPT_BYTES];
    char text[512];
    size_t n_served;
    const dv_str *served = dv_channel_protocols(use, &n_served);
    struct dv_err err;
    dv_str protocol;

    fields.n_protocols = fields_of(request, "sec-websocket-protocol", protocols, 8);
    must(dv_ws_accept(&fields, served, n_served, accept, &protocol, &err), &err);
    (void)snprintf(
        text, sizeof(text),
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %.*s\r\n\r\n",
        accept, DV_FMT(protocol));
    say(visit->fd, text);
    if (dv_channel_protocol_find(protocol))
        visit_channels(visit, dv_channel_protocol_find(protocol));
    else
        visit_spdy(visit, true);
}

static void answer_spdy(struct visit *visit, const struct request *request, dv_str target)
{
    static const dv_str port_forward = DV_STR_INIT(DV_PORT_FORWARD_VERSION);
    struct dv_exec_request asked = {.has_stdin = has_text(target, "stdin=true"),
                                    .has_stdout = has_text(target, "stdout=true"),
                                    .has_stderr = has_text(target, "stderr=true"),
                                    .has_tty = has_text(target, "tty=true")};
    dv_str offers[8];
    size_t n_offers = fields_of(request, "x-stream-protocol-version", offers, 8);
    size_t n_served = 1;
    const dv_str *served = visit->is_exec ? dv_exec_versions(&n_served) : &port_forward;
    char text[512];
    struct dv_err err;
    dv_str version;

    must(dv_upgrade_negotiate(offers, n_offers, served, n_served, &version, &err), &err);
    (void)snprintf(
        text, sizeof(text),
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        "X-Stream-Protocol-Version: %.*s\r\n\r\n",
        DV_FMT(version));
    say(visit->fd, text);
    if (visit->is_exec)
        dv_exec_streams_init(&visit->streams, &asked, dv_exec_version_find(version));
    visit_spdy(visit, false);
}

static const char *document_of(dv_str target)
{
    if (has_text(target, "/api/v1/namespaces/default/pods/p"))
        return "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"namespace\":"
               "\"default\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]},"
               "\"status\":{\"phase\":\"Running\"}}";
    if (has_text(target, "/api/v1"))
        return "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":"
               "\"pods\",\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"get\",\"list\"]}]}";
    if (has_text(target, "/apis"))
        return "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[]}";
    return "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[]}";
}

static void serve(int fd)
{
    static struct request request;
    struct visit visit = {.fd = fd};
    char text[2048];
    dv_str target;

    if (!read_request(fd, &request))
        return;
    target = request.line;
    visit.program = program_of(target);
    visit.is_exec = has_text(target, "/exec?");
    if (dv_upgrade_is_asked(field_of(&request, "connection"), field_of(&request, "upgrade"),
                            DV_STR("websocket"))) {
        answer_websocket(&visit, &request, target);
    } else if (dv_upgrade_is_asked(field_of(&request, "connection"), field_of(&request, "upgrade"),
                                   DV_STR("SPDY/3.1"))) {
        answer_spdy(&visit, &request, target);
    } else {
        (void)snprintf(text, sizeof(text),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       strlen(document_of(target)), document_of(target));
        say(fd, text);
    }
}

void house_open(struct house *house)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(fd, 128), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    house->port = ntohs(address.sin_port);
    house->pid = fork();
    assert_true(house->pid >= 0);
    if (house->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGCHLD, SIG_IGN);
        for (;;) {
            int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

            if (client >= 0 && fork() == 0) {
                serve(client);
                _exit(0);
            }
            (void)close(client);
        }
    }
    (void)close(fd);
}

void house_close(struct house *house)
{
    (void)kill(house->pid, SIGKILL);
    (void)waitpid(house->pid, NULL, 0);
}
