/* sample_control.c - commands over a Unix socket: one a line, each answered with one line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sample.h"

#define LINE_BYTES_MAX 4096u
#define WORDS_MAX 4
#define FAILURES_MAX 1000000u
#define LISTEN_BACKLOG 16
/* Each is a test or a person. */
#define CONNECTIONS_MAX 64u

struct connection {
    struct sample_control *control;
    struct connection *next;
    int fd;
    struct davit_poll *poll;
    char line[LINE_BYTES_MAX];
    size_t n_line;
    FILE *out;     /* into `answers`, while commands run */
    char *answers; /* of the lines that came together; NULL: all are sent */
    size_t n_answers;
    size_t n_sent;
};

struct sample_control {
    struct sample *sample;
    int fd;
    struct davit_poll *poll;
    struct connection *connections;
    size_t n_connections;
    bool is_quitting;
};

/* ---- commands ---- */

static void answer(struct connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void answer(struct connection *connection, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(connection->out, format, args);
    va_end(args);
    (void)fputc('\n', connection->out);
}

static void push(struct connection *connection)
{
    struct sample *sample = connection->control->sample;
    struct davit_error error;

    if (sample_devices_push(&sample->devices, sample->plugin, &error))
        answer(connection, "ok");
    else
        answer(connection, "error %s", error.message);
}

static void run_health(struct connection *connection, char **words)
{
    struct sample_device *device =
        sample_devices_find(&connection->control->sample->devices, words[1]);

    if (!device) {
        answer(connection, "error no device %s", words[1]);
    } else if (strcmp(words[2], "healthy") != 0 && strcmp(words[2], "unhealthy") != 0) {
        answer(connection, "error health is healthy or unhealthy, not %s", words[2]);
    } else {
        device->is_broken = strcmp(words[2], "unhealthy") == 0;
        push(connection);
    }
}

static void run_add(struct connection *connection, char **words)
{
    struct sample_devices *devices = &connection->control->sample->devices;
    struct sample_numa numa = {.n = 0};
    struct sample_device *device;

    if (words[2] && !sample_numa_parse(words[2], &numa)) {
        answer(connection, "error NUMA nodes are like 0 or 0+1, not %s", words[2]);
        return;
    }
    device = sample_devices_find_any(devices, words[1]);
    if (device && !device->is_removed) {
        answer(connection, "error there is a device %s", words[1]);
        return;
    }
    if (!device)
        device = sample_devices_add(devices, words[1], NULL);
    device->is_removed = device->is_broken = false;
    if (words[2])
        device->numa = numa;
    push(connection);
}

static void run_remove(struct connection *connection, char **words)
{
    struct sample_device *device =
        sample_devices_find(&connection->control->sample->devices, words[1]);

    if (!device) {
        answer(connection, "error no device %s", words[1]);
        return;
    }
    device->is_removed = true;
    push(connection);
}

/* ok N ID=HEALTH[@NODE[+NODE...]] ... */
static void run_list(struct connection *connection, char **words)
{
    const struct sample_devices *devices = &connection->control->sample->devices;
    size_t n = 0;

    (void)words;
    for (size_t i = 0; i < devices->n; i++)
        n += !devices->v[i]->is_removed;
    (void)fprintf(connection->out, "ok %zu", n);
    for (size_t i = 0; i < devices->n; i++) {
        const struct sample_device *device = devices->v[i];

        if (device->is_removed)
            continue;
        (void)fprintf(connection->out, " %s=%s", device->id,
                      sample_device_is_healthy(device) ? "healthy" : "unhealthy");
        for (size_t k = 0; k < device->numa.n; k++)
            (void)fprintf(connection->out, "%c%d", k ? '+' : '@', device->numa.nodes[k]);
    }
    (void)fputc('\n', connection->out);
}

static void run_fail_allocate(struct connection *connection, char **words)
{
    char *end;
    unsigned long n = strtoul(words[1], &end, 10);

    if (words[1][0] < '0' || words[1][0] > '9' || *end != '\0' || n > FAILURES_MAX) {
        answer(connection, "error %s is no number up to %u", words[1], FAILURES_MAX);
        return;
    }
    connection->control->sample->n_failures = n;
    answer(connection, "ok");
}

static void run_hang(struct connection *connection, char **words)
{
    if (words[1] && strcmp(words[1], "off") != 0) {
        answer(connection, "error hang takes off or nothing, not %s", words[1]);
        return;
    }
    sample_hang(connection->control->sample, !words[1]);
    answer(connection, "ok");
}

static void run_quit(struct connection *connection, char **words)
{
    (void)words;
    connection->control->is_quitting = true;
    answer(connection, "ok");
}

static const struct {
    const char *name;
    int n_min; /* words, the command among them */
    int n_max;
    void (*run)(struct connection *connection, char **words); /* those left out are NULL */
} commands[] = {
    {"health",        3, 3, run_health       },
    {"add",           2, 3, run_add          },
    {"remove",        2, 2, run_remove       },
    {"list",          1, 1, run_list         },
    {"fail-allocate", 2, 2, run_fail_allocate},
    {"hang",          1, 2, run_hang         },
    {"quit",          1, 1, run_quit         },
};

static void run_line(struct connection *connection, char *line)
{
    char *words[WORDS_MAX + 1] = {NULL};
    char *rest = NULL;
    int n = 0;

    for (char *word = strtok_r(line, " \t\r", &rest); word && n < WORDS_MAX;
         word = strtok_r(NULL, " \t\r", &rest))
        words[n++] = word;
    for (size_t i = 0; n > 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(words[0], commands[i].name) != 0)
            continue;
        if (n < commands[i].n_min || n > commands[i].n_max)
            answer(connection, "error wrong number of words for %s", words[0]);
        else
            commands[i].run(connection, words);
        return;
    }
    answer(connection, "error no command %s", n > 0 ? words[0] : "in an empty line");
}

/* ---- connections ---- */

static void close_connection(struct connection *connection)
{
    struct connection **at = &connection->control->connections;

    while (*at != connection)
        at = &(*at)->next;
    *at = connection->next;
    connection->control->n_connections--;
    davit_poll_close(connection->poll);
    (void)close(connection->fd);
    free(connection->answers);
    free(connection);
}

/* Takes the whole lines out of what was read. */
static void run_lines(struct connection *connection)
{
    char *from = connection->line;
    char *end;

    while ((end = memchr(from, '\n', connection->n_line)) != NULL) {
        *end = '\0';
        run_line(connection, from);
        connection->n_line -= (size_t)(end + 1 - from);
        from = end + 1;
    }
    memmove(connection->line, from, connection->n_line);
}

/* Sends as much as goes now, and waits for room or for the next lines. False: the client is gone.
 */
static bool send_answers(struct connection *connection)
{
    while (connection->n_sent < connection->n_answers) {
        ssize_t n = send(connection->fd, connection->answers + connection->n_sent,
                         connection->n_answers - connection->n_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN)
            return false;
        if (n < 0) {
            davit_poll_set(connection->poll, DAVIT_WRITABLE);
            return true;
        }
        connection->n_sent += (size_t)n;
    }
    free(connection->answers);
    connection->answers = NULL;
    connection->n_answers = connection->n_sent = 0;
    davit_poll_set(connection->poll, DAVIT_READABLE);
    return true;
}

/* False: the client is gone, or to be sent away. */
static bool receive_lines(struct connection *connection)
{
    ssize_t n = recv(connection->fd, connection->line + connection->n_line,
                     LINE_BYTES_MAX - connection->n_line, MSG_DONTWAIT);
    bool is_good = true;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    connection->n_line += (size_t)n;
    connection->out = open_memstream(&connection->answers, &connection->n_answers);
    if (!connection->out)
        abort(); /* no memory */
    run_lines(connection);
    if (connection->n_line == LINE_BYTES_MAX) {
        answer(connection, "error a line is longer than %u bytes", LINE_BYTES_MAX);
        is_good = false;
    }
    if (fclose(connection->out) != 0)
        abort(); /* no memory */
    return send_answers(connection) && is_good;
}

static void on_ready(void *ctx, unsigned events)
{
    struct connection *connection = ctx;
    struct sample_control *control = connection->control;
    bool is_good = connection->answers ? send_answers(connection) : receive_lines(connection);

    (void)events;
    if (!is_good)
        close_connection(connection);
    if (control->is_quitting)
        davit_driver_stop(control->sample->driver);
}

static void on_connection(void *ctx, unsigned events)
{
    struct sample_control *control = ctx;
    struct connection *connection;
    int fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC);

    (void)events;
    if (fd < 0)
        return; /* it has left again */
    if (control->n_connections == CONNECTIONS_MAX) {
        (void)close(fd);
        return;
    }
    connection = sample_alloc(sizeof(*connection));
    connection->control = control;
    connection->fd = fd;
    connection->next = control->connections;
    control->connections = connection;
    control->n_connections++;
    connection->poll =
        davit_poll_open(control->sample->driver, fd, DAVIT_READABLE, on_ready, connection, NULL);
    if (!connection->poll)
        close_connection(connection);
}

/* ---- the socket ---- */

static bool fail(struct davit_error *error, const char *path)
{
    int errnum = errno;

    error->code = DAVIT_UNAVAILABLE;
    (void)snprintf(error->message, sizeof(error->message), "control socket %.100s: %s", path,
                   strerror(errnum));
    return false;
}

/* A file that nobody answers on is in the way. */
static void clear_stale(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat info;

    if (fd >= 0 && stat(address->sun_path, &info) == 0 && S_ISSOCK(info.st_mode) &&
        connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
        errno == ECONNREFUSED)
        (void)unlink(address->sun_path); /* if not, bind says so */
    if (fd >= 0)
        (void)close(fd);
}

static bool listen_at(struct sample_control *control, const char *path, struct davit_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return fail(error, path);
    }
    memcpy(address.sun_path, path, strlen(path));
    clear_stale(&address);
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (control->fd < 0)
        return fail(error, path);
    if (fchmod(control->fd, 0600) != 0 ||
        bind(control->fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        (void)fail(error, path);
        (void)close(control->fd);
        control->fd = -1;
        return false;
    }
    return listen(control->fd, LISTEN_BACKLOG) == 0 || fail(error, path);
}

struct sample_control *sample_control_open(struct sample *sample, struct davit_error *error)
{
    struct sample_control *control = sample_alloc(sizeof(*control));

    control->sample = sample;
    control->fd = -1;
    if (listen_at(control, sample->options.control, error))
        control->poll = davit_poll_open(sample->driver, control->fd, DAVIT_READABLE, on_connection,
                                        control, error);
    if (control->poll)
        return control;
    sample_control_close(control);
    return NULL;
}

void sample_control_close(struct sample_control *control)
{
    if (!control)
        return;
    while (control->connections)
        close_connection(control->connections);
    davit_poll_close(control->poll);
    if (control->fd >= 0) {
        (void)unlink(control->sample->options.control); /* gone is what we want */
        (void)close(control->fd);
    }
    free(control);
}
