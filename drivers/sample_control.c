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

#include "davit/driver.h"
#include "sample_program.h"

#define LINE_BYTES_MAX 4096u
#define WORDS_MAX 8
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
    struct davit_driver *driver;
    char *path;
    const struct sample_command *commands;
    size_t n_commands;
    void *ctx;
    int fd;
    struct davit_poll *poll;
    struct connection *connections;
    size_t n_connections;
    bool is_quitting;
};

/* ---- commands ---- */

void sample_answer(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(out, format, args);
    va_end(args);
    (void)fputc('\n', out);
}

static const struct sample_command *find_command(const struct sample_control *control,
                                                 const char *name)
{
    for (size_t i = 0; name && i < control->n_commands; i++)
        if (strcmp(name, control->commands[i].name) == 0)
            return &control->commands[i];
    return NULL;
}

static void run_line(struct connection *connection, char *line)
{
    const struct sample_control *control = connection->control;
    char *words[WORDS_MAX + 1] = {NULL};
    char *rest = NULL;
    char *word = strtok_r(line, " \t\r", &rest);
    const struct sample_command *command = find_command(control, word);
    int n = 0;

    for (; command && word && n < WORDS_MAX; word = strtok_r(NULL, " \t\r", &rest)) {
        words[n++] = word;
        if (command->has_sentence && n == command->n_max - 1 && rest && *rest) {
            rest[strcspn(rest, "\r")] = '\0';
            words[n++] = rest;
            break;
        }
    }
    if (!command)
        sample_answer(connection->out, "error no command %s", word ? word : "in an empty line");
    else if (n < command->n_min || n > command->n_max)
        sample_answer(connection->out, "error wrong number of words for %s", words[0]);
    else
        command->run(control->ctx, connection->out, words);
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
        sample_answer(connection->out, "error a line is longer than %u bytes", LINE_BYTES_MAX);
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
        davit_driver_stop(control->driver);
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
        davit_poll_open(control->driver, fd, DAVIT_READABLE, on_ready, connection, NULL);
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

struct sample_control *sample_control_open(struct davit_driver *driver, const char *path,
                                           const struct sample_command *commands, size_t n_commands,
                                           void *ctx, struct davit_error *error)
{
    struct sample_control *control = sample_alloc(sizeof(*control));

    control->driver = driver;
    control->path = sample_copy(path);
    control->commands = commands;
    control->n_commands = n_commands;
    control->ctx = ctx;
    control->fd = -1;
    if (listen_at(control, path, error))
        control->poll =
            davit_poll_open(driver, control->fd, DAVIT_READABLE, on_connection, control, error);
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
        (void)unlink(control->path); /* gone is what we want */
        (void)close(control->fd);
    }
    free(control->path);
    free(control);
}

void sample_control_quit(struct sample_control *control)
{
    control->is_quitting = true;
}
