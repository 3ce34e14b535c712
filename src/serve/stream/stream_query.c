/* stream_query.c - what the query of an exec, attach or port-forward asks for. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "rest/rest.h"
#include "serve/pod_stream.h"
#include "serve/wire/kube_query.h"

/* Each port has two channels, whose number is one byte. */
#define PORTS_MAX 64u
/* How much of a value is quoted in a message. */
#define SHOWN_BYTES_MAX 64u

enum parameter {
    STDIN,
    STDOUT,
    STDERR,
    TTY,
    COMMAND,
    CONTAINER,
    PORTS,
    N_PARAMETERS,
};

/* A node has the container in its path. */
static const dv_str names[][N_PARAMETERS] = {
    [DV_POD_STREAM_OF_API] = {DV_STR_INIT("stdin"), DV_STR_INIT("stdout"), DV_STR_INIT("stderr"),
                              DV_STR_INIT("tty"), DV_STR_INIT("command"), DV_STR_INIT("container"),
                              DV_STR_INIT("ports")},
    [DV_POD_STREAM_OF_NODE] = {DV_STR_INIT("input"), DV_STR_INIT("output"), DV_STR_INIT("error"),
                              DV_STR_INIT("tty"), DV_STR_INIT("command"), DV_STR_INIT(""),
                              DV_STR_INIT("port") },
};

struct reading {
    enum dv_pod_stream_naming naming;
    struct dv_arena *arena;
    struct dv_pod_stream_options *options;
    bool has_flag[TTY + 1]; /* the first value of a name counts, as in the reference */
    bool flags[TTY + 1];
    DV_VEC(dv_str) command;
    DV_VEC(uint16_t) ports;
};

static bool is_set(enum dv_pod_stream_naming naming, dv_str value)
{
    return naming == DV_POD_STREAM_OF_NODE ? dv_str_eq(value, DV_STR("1"))
                                           : dv_query_is_true(value);
}

/* "8080" or "8080,9090" */
static bool add_ports(struct reading *reading, dv_str value, struct dv_err *err)
{
    dv_str name = names[reading->naming][PORTS];
    dv_str text;

    if (value.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "query parameter \"%.*s\" cannot be empty",
                       DV_FMT(name));
    while (dv_str_split(&value, ',', &text)) {
        uint32_t port;

        if (!dv_str_to_u32(text, &port) || port > UINT16_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT, "unable to parse \"%.*s\" as a port",
                           DV_FMT(dv_str_slice(text, 0, SHOWN_BYTES_MAX)));
        if (port == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "port \"0\" must be > 0");
        if (reading->ports.n == PORTS_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT, "more than %u ports", PORTS_MAX);
        *dv_vec_add_in(&reading->ports, reading->arena) = (uint16_t)port;
    }
    return true;
}

static bool take(struct reading *reading, enum parameter which, dv_str value, struct dv_err *err)
{
    switch (which) {
    case STDIN:
    case STDOUT:
    case STDERR:
    case TTY:
        if (!reading->has_flag[which])
            reading->flags[which] = is_set(reading->naming, value);
        reading->has_flag[which] = true;
        return true;
    case COMMAND:
        *dv_vec_add_in(&reading->command, reading->arena) = value;
        return true;
    case CONTAINER:
        if (reading->options->container.n == 0)
            reading->options->container = value;
        return true;
    case PORTS:
        return reading->options->verb != DV_POD_PORT_FORWARD || add_ports(reading, value, err);
    case N_PARAMETERS:
        break;
    }
    return true;
}

static bool check(const struct dv_pod_stream_options *options, struct dv_err *err)
{
    if (options->verb == DV_POD_PORT_FORWARD)
        return true;
    if (!options->has_stdin && !options->has_stdout && !options->has_stderr)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "you must specify at least 1 of stdin, stdout, stderr");
    if (options->verb == DV_POD_EXEC && options->n_command == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "you must specify at least one command");
    for (size_t i = 0; i < options->n_command; i++)
        if (dv_str_find_char(options->command[i], '\0') < options->command[i].n)
            return dv_fail(err, DV_INVALID_ARGUMENT, "a command has a zero byte");
    return true;
}

bool dv_pod_stream_parse(enum dv_pod_stream_verb verb, enum dv_pod_stream_naming naming,
                         dv_str query, struct dv_arena *arena,
                         struct dv_pod_stream_options *options, struct dv_err *err)
{
    struct dv_pod_stream_options read = {.verb = verb};
    struct reading reading = {.naming = naming, .arena = arena, .options = &read};
    dv_str name;
    dv_str value;

    while (dv_rest_query_next(&query, arena, &name, &value))
        for (unsigned i = 0; i < N_PARAMETERS; i++)
            if (name.n > 0 && dv_str_eq(names[naming][i], name) &&
                !take(&reading, (enum parameter)i, value, err))
                return false;
    read.command = reading.command.v;
    read.n_command = reading.command.n;
    read.ports = reading.ports.v;
    read.n_ports = reading.ports.n;
    read.has_stdin = reading.flags[STDIN];
    read.has_stdout = reading.flags[STDOUT];
    read.has_tty = reading.flags[TTY];
    read.has_stderr = reading.flags[STDERR] && !read.has_tty;
    if (!check(&read, err))
        return false;
    *options = read;
    return true;
}

static void print_flag(enum parameter which, bool is_set, struct dv_buf *query)
{
    if (is_set)
        dv_buf_printf(query, "%s%.*s=1", query->n > 0 ? "&" : "",
                      DV_FMT(names[DV_POD_STREAM_OF_NODE][which]));
}

void dv_pod_stream_print(const struct dv_pod_stream_options *options, struct dv_buf *query)
{
    const dv_str *of_node = names[DV_POD_STREAM_OF_NODE];

    print_flag(STDIN, options->has_stdin, query);
    print_flag(STDOUT, options->has_stdout, query);
    print_flag(STDERR, options->has_stderr, query);
    print_flag(TTY, options->has_tty, query);
    for (size_t i = 0; i < options->n_command; i++) {
        dv_buf_printf(query, "%s%.*s=", query->n > 0 ? "&" : "", DV_FMT(of_node[COMMAND]));
        dv_rest_add_encoded(query, options->command[i]);
    }
    for (size_t i = 0; i < options->n_ports; i++)
        dv_buf_printf(query, "%s%.*s=%u", query->n > 0 ? "&" : "", DV_FMT(of_node[PORTS]),
                      options->ports[i]);
}
