#include "pod_life_record.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "json/json.h"

dv_str record_str(const struct dv_json *json, const char *key)
{
    const struct dv_json *node = dv_json_get(json, dv_str_from_c(key));
    dv_str text = DV_STR_NONE;
    struct dv_err err;

    if (!node || !dv_json_as_str(node, &text, &err))
        return DV_STR_NONE;
    return text;
}

double record_double(const struct dv_json *json, const char *key)
{
    const struct dv_json *node = dv_json_get(json, dv_str_from_c(key));
    char text[64];
    dv_str number;

    if (dv_json_is(node, DV_JSON_STRING))
        number = record_str(json, key);
    else if (dv_json_is(node, DV_JSON_NUMBER))
        number = dv_json_number_text(node);
    else
        return 0;
    (void)snprintf(text, sizeof(text), "%.*s", DV_FMT(number));
    return strtod(text, NULL);
}

static uint64_t milliseconds(const struct dv_json *json, const char *key)
{
    return (uint64_t)(record_double(json, key) * 1000 + 0.5);
}

/* The line with times instead of "<t+N>" and "<time>". */
static dv_str put_times(dv_str line, struct dv_arena *arena)
{
    struct dv_buf text;
    dv_str done;
    size_t at;

    dv_buf_init(&text, 64u * 1024u * 1024u);
    while ((at = dv_str_find(line, DV_STR("\"<t"))) < line.n) {
        dv_str rest = dv_str_slice(line, at, line.n);
        dv_str mark = dv_str_slice(rest, 0, dv_str_find_char(rest, '>') + 2);
        dv_str number = dv_str_slice(mark, 3, mark.n - 2);
        struct dv_time time = {.is_set = true};
        int64_t seconds = 0;

        (void)dv_str_take(&number, '+');
        dv_buf_add(&text, dv_str_slice(line, 0, at));
        if (dv_str_to_i64(number, &seconds))
            time.seconds = LIFE_BASE_S + seconds;
        if (!dv_str_starts_with(mark, DV_STR("\"<t+")) && !dv_str_eq(mark, DV_STR("\"<time>\""))) {
            dv_buf_add(&text, mark);
        } else {
            dv_buf_add_char(&text, '"');
            dv_api_time_print(time, false, &text);
            dv_buf_add_char(&text, '"');
        }
        line = dv_str_slice(line, at + mark.n, line.n);
    }
    dv_buf_add(&text, line);
    done = dv_str_copy(dv_buf_str(&text), arena);
    dv_buf_fini(&text);
    return done;
}

/* "<container:NAME:N>", with whatever is before it. */
static void read_instance(dv_str id, dv_str *container, uint32_t *attempt)
{
    size_t at = dv_str_find(id, DV_STR("<container:"));
    dv_str rest = dv_str_slice(id, at + sizeof("<container:") - 1, id.n);

    if (at == id.n)
        return;
    *container = dv_str_slice(rest, 0, dv_str_find_char(rest, ':'));
    rest = dv_str_slice(rest, container->n + 1, rest.n - 1);
    if (!dv_str_to_u32(rest, attempt))
        *attempt = 0;
}

static dv_str read_command(const struct dv_json *list, struct dv_arena *arena)
{
    dv_str command = DV_STR_NONE;

    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        dv_str word = DV_STR_NONE;
        struct dv_err err;

        if (dv_json_as_str(item, &word, &err))
            command = dv_str_printf(arena, "%.*s%s%.*s", DV_FMT(command), command.n > 0 ? " " : "",
                                    DV_FMT(word));
    }
    return command;
}

static void read_call(const struct dv_json *json, struct dv_arena *arena, struct record_call *call)
{
    const struct dv_json *error = dv_json_get(json, DV_STR("error"));

    call->ms = milliseconds(json, "t");
    call->duration_ms = (uint64_t)record_double(json, "ms");
    call->method = record_str(json, "method");
    call->uid = record_str(json, "uid");
    call->image = record_str(json, "image");
    call->container = record_str(json, "container");
    call->attempt = (uint32_t)record_double(json, "attempt");
    read_instance(record_str(json, "container_id"), &call->container, &call->attempt);
    call->has_timeout = dv_json_get(json, DV_STR("timeout")) != NULL;
    call->timeout_s = (int64_t)record_double(json, "timeout");
    call->exit_code = (int64_t)record_double(json, "exit_code");
    call->command = read_command(dv_json_get(json, DV_STR("cmd")), arena);
    call->has_failed = error != NULL;
    call->error = record_str(error, "message");
    call->code = record_str(error, "code");
}

static bool read_statuses(const struct dv_json *list, struct dv_arena *arena, struct record *record,
                          struct dv_err *err)
{
    record->statuses = DV_NEW_ARRAY(arena, struct record_status, dv_json_n(list));
    for (const struct dv_json *item = dv_json_first(list); item; item = dv_json_next(item)) {
        struct record_status *status = &record->statuses[record->n_statuses++];

        status->ms = milliseconds(item, "t");
        status->type = record_str(item, "type");
        if (!dv_decode_json(&dv_message_pod_status, dv_json_get(item, DV_STR("status")),
                            DV_UNKNOWN_DROP, arena, &status->status, NULL, err))
            return false;
        if (status->ms > record->end_ms)
            record->end_ms = status->ms;
    }
    return true;
}

/* The second after the creation that a time is in. */
static int64_t read_second(dv_str text)
{
    struct dv_time time = {0};
    struct dv_err err;

    return dv_api_time_parse(text, &time, &err) ? time.seconds - LIFE_BASE_S : 0;
}

static void read_lists(const struct dv_json *json, struct dv_arena *arena, struct record *record)
{
    const struct dv_json *actions = dv_json_get(json, DV_STR("actions"));
    const struct dv_json *events = dv_json_get(json, DV_STR("events"));
    const struct dv_json *calls = dv_json_get(json, DV_STR("cri"));

    record->actions = DV_NEW_ARRAY(arena, struct record_action, dv_json_n(actions));
    for (const struct dv_json *item = dv_json_first(actions); item; item = dv_json_next(item))
        record->actions[record->n_actions++] =
            (struct record_action){milliseconds(item, "t"), record_str(item, "do"), item};
    record->events = DV_NEW_ARRAY(arena, struct record_event, dv_json_n(events));
    for (const struct dv_json *item = dv_json_first(events); item; item = dv_json_next(item))
        record->events[record->n_events++] = (struct record_event){
            read_second(record_str(item, "first")),
            dv_str_eq(record_str(item, "type"), DV_STR("Warning")), record_str(item, "reason"),
            record_str(item, "message"), record_str(item, "fieldPath")};
    record->calls = DV_NEW_ARRAY(arena, struct record_call, dv_json_n(calls));
    for (const struct dv_json *item = dv_json_first(calls); item; item = dv_json_next(item)) {
        read_call(item, arena, &record->calls[record->n_calls]);
        if (record->calls[record->n_calls].ms > record->end_ms)
            record->end_ms = record->calls[record->n_calls].ms;
        record->n_calls++;
    }
}

bool record_read(dv_str line, struct dv_arena *arena, struct record *record, struct dv_err *err)
{
    const struct dv_json *json = dv_json_parse(put_times(line, arena), NULL, arena, err);
    const struct dv_json *pod;

    *record = (struct record){0};
    if (!json)
        return false;
    record->id = record_str(json, "id");
    pod = dv_json_get(json, DV_STR("pod"));
    if (dv_json_is(pod, DV_JSON_OBJECT)) {
        record->pod = DV_NEW(arena, struct dv_api_pod);
        if (!dv_decode_json(&dv_message_pod, pod, DV_UNKNOWN_DROP, arena, record->pod, NULL, err))
            return false;
    }
    read_lists(json, arena, record);
    return read_statuses(dv_json_get(json, DV_STR("statuses")), arena, record, err);
}

/* ---- what it says ---- */

const struct record_call *record_call_of(const struct record *record, const char *method,
                                         dv_str container, uint32_t attempt, size_t n)
{
    const struct record_call *found = NULL;

    for (size_t i = 0; i < record->n_calls; i++) {
        const struct record_call *call = &record->calls[i];

        if (!dv_str_eq(call->method, dv_str_from_c(method)) || call->attempt != attempt ||
            !dv_str_eq(call->container, container))
            continue;
        found = call;
        if (n-- == 0)
            break;
    }
    return found;
}

const struct record_event *record_event_of(const struct record *record, const char *reason,
                                           dv_str container, const char *begin)
{
    for (size_t i = 0; i < record->n_events; i++) {
        const struct record_event *event = &record->events[i];

        if (dv_str_eq(event->reason, dv_str_from_c(reason)) &&
            dv_str_starts_with(event->message, dv_str_from_c(begin)) &&
            (container.n == 0 || dv_str_find(event->field_path, container) < event->field_path.n))
            return event;
    }
    return NULL;
}

/* The lists of container statuses, one after the other. */
static const struct dv_api_container_status *list_of(const struct dv_api_pod_status *status, int i,
                                                     size_t *n)
{
    *n = i == 0   ? status->n_init_container_statuses
         : i == 1 ? status->n_container_statuses
                  : status->n_ephemeral_container_statuses;
    return i == 0   ? status->init_container_statuses
           : i == 1 ? status->container_statuses
                    : status->ephemeral_container_statuses;
}

dv_str record_waiting(const struct record *record, dv_str container, const char *reason)
{
    for (size_t i = 0; i < record->n_statuses; i++)
        for (int list = 0; list < 3; list++) {
            size_t n;
            const struct dv_api_container_status *statuses =
                list_of(&record->statuses[i].status, list, &n);

            for (size_t j = 0; j < n; j++)
                if (dv_str_eq(statuses[j].name, container) && statuses[j].state.waiting &&
                    dv_str_eq(statuses[j].state.waiting->reason, dv_str_from_c(reason)))
                    return statuses[j].state.waiting->message;
        }
    return DV_STR_NONE;
}

static bool is_of(const struct dv_api_container_state_terminated *end, dv_str container,
                  uint32_t attempt)
{
    dv_str name = DV_STR_NONE;
    uint32_t number = 0;

    if (!end)
        return false;
    read_instance(end->container_id, &name, &number);
    return name.n > 0 && dv_str_eq(name, container) && number == attempt;
}

static const struct dv_api_container_state_terminated *find_end(const struct record *record,
                                                                dv_str container, uint32_t attempt)
{
    for (size_t i = 0; i < record->n_statuses; i++)
        for (int list = 0; list < 3; list++) {
            size_t n;
            const struct dv_api_container_status *statuses =
                list_of(&record->statuses[i].status, list, &n);

            for (size_t j = 0; j < n; j++) {
                if (is_of(statuses[j].state.terminated, container, attempt))
                    return statuses[j].state.terminated;
                if (is_of(statuses[j].last_state.terminated, container, attempt))
                    return statuses[j].last_state.terminated;
            }
        }
    return NULL;
}

const struct dv_api_container_status *record_status_at(const struct record *record,
                                                       dv_str container, uint64_t ms)
{
    const struct dv_api_container_status *found = NULL;

    for (size_t i = 0; i < record->n_statuses && record->statuses[i].ms <= ms; i++)
        for (int list = 0; list < 3; list++) {
            size_t n;
            const struct dv_api_container_status *statuses =
                list_of(&record->statuses[i].status, list, &n);

            for (size_t j = 0; j < n; j++)
                if (dv_str_eq(statuses[j].name, container))
                    found = &statuses[j];
        }
    return found;
}

/* Whether somebody killed the container at about that second. */
static bool was_killed(const struct record *record, dv_str container, int64_t second)
{
    for (size_t i = 0; i < record->n_actions; i++) {
        const struct record_action *action = &record->actions[i];
        int64_t at = (int64_t)(action->ms / 1000);

        if (dv_str_eq(action->verb, DV_STR("kill-container")) &&
            dv_str_eq(record_str(action->json, "container"), container) && second >= at &&
            second <= at + 2)
            return true;
    }
    return false;
}

struct record_end record_end_of(const struct record *record, dv_str container, uint32_t attempt)
{
    const struct dv_api_container_state_terminated *end = find_end(record, container, attempt);
    const struct record_call *stop = record_call_of(record, "StopContainer", container, attempt, 0);
    struct record_end found = {.is_known = end != NULL};
    int64_t second;

    if (!end)
        return found;
    second = end->finished_at.seconds - LIFE_BASE_S;
    found.exit_code = (int32_t)end->exit_code;
    found.reason = end->reason;
    found.message = end->message;
    /* Times of ends are whole seconds of the clock, those of calls count from the creation. */
    found.is_own = (!stop || second + 1 < (int64_t)(stop->ms / 1000)) &&
                   !was_killed(record, container, second);
    found.after_ms = (uint64_t)(end->finished_at.seconds - end->started_at.seconds) * 1000;
    if (found.after_ms == 0)
        found.after_ms = 300; /* within the second */
    return found;
}
