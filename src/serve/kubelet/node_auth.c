#include "serve/kubelet/node_auth.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "cluster/cluster.h"
#include "rest/rest.h"
#include "serve/kubelet/node_route.h"
#include "serve/kubelet/review_cache.h"

#define TOKEN_MS (2u * 60u * 1000u)
#define YES_MS (5u * 60u * 1000u)
#define NO_MS (30u * 1000u)
/* More users than ever talk to one node; and guesses, which need not be remembered for long. */
#define YES_MAX 1024u
#define NO_MAX 256u
#define KEY_BYTES_MAX (1u << 20)
/* Pause between lines in the log about an API server that does not answer. */
#define COMPLAINT_MS 10000u

/* What a question is about; each has its own places. */
enum subject {
    NEW_TOKEN,
    SEEN_TOKEN, /* it was good not long ago */
    RIGHT,
};

static const struct {
    size_t asked_max;   /* questions under way */
    size_t waiting_max; /* questions that wait for their turn */
} places[] = {
    [NEW_TOKEN] = {8,  64 },
    [SEEN_TOKEN] = {8,  256},
    [RIGHT] = {16, 256},
};

/* A question to the API server. */
struct question {
    struct dv_node_auth *auth;
    struct dv_review_key key;
    enum subject subject;
    struct dv_link link; /* among those that wait for their turn */
    struct dv_list checks;
    struct dv_arena *arena;
    struct dv_user_review review;
    struct dv_api_token_review_spec token;
    struct dv_api_subject_access_review_spec access;
    struct dv_api_resource_attributes attributes;
    bool is_asked;
};

struct dv_node_auth {
    struct dv_loop *loop;
    struct dv_cluster *cluster;
    dv_str node_name;
    struct dv_review_cache tokens;
    struct dv_review_cache rights;
    struct dv_map questions; /* by key */
    size_t n_asked[DV_COUNT(places)];
    size_t n_waiting[DV_COUNT(places)];
    struct dv_list waiting[DV_COUNT(places)];
    struct dv_list ended; /* checks that are told next */
    struct dv_task task;
    uint64_t complained_ms; /* 0: never */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

static void go_on(struct dv_node_check *check);

/* ---- ends ---- */

static void close_if_done(struct dv_node_auth *auth)
{
    dv_closed_fn *closed = auth->closed;
    void *ctx = auth->closed_ctx;

    if (!auth->is_closing || auth->questions.n > 0 || !dv_list_is_empty(&auth->ended))
        return;
    dv_task_cancel(&auth->task);
    dv_review_cache_fini(&auth->tokens);
    dv_review_cache_fini(&auth->rights);
    dv_map_fini(&auth->questions);
    free(auth);
    if (closed)
        closed(ctx);
}

static void on_task(struct dv_task *task)
{
    struct dv_node_auth *auth = DV_CONTAINER(task, struct dv_node_auth, task);
    struct dv_link *link;

    while ((link = dv_list_shift(&auth->ended)) != NULL) {
        struct dv_node_check *check = DV_CONTAINER(link, struct dv_node_check, link);

        check->done(check, check->verdict);
    }
    close_if_done(auth);
}

static void end(struct dv_node_check *check, enum dv_node_verdict verdict)
{
    check->verdict = verdict;
    dv_list_push(&check->auth->ended, &check->link);
    dv_task_post(&check->auth->task, check->auth->loop, on_task);
}

/* ---- keys ---- */

static void add_text(struct dv_buf *buf, dv_str text)
{
    dv_buf_printf(buf, "%zu:", text.n);
    dv_buf_add(buf, text);
}

static void token_key(const struct dv_node_check *check, struct dv_review_key *key)
{
    dv_rest_sha256(check->token, key->bytes);
}

/* Everything that an answer may depend on, each text with its length, so that no two questions look
 * alike. False: the user has more groups than anybody. */
static bool right_key(const struct dv_node_check *check, struct dv_review_key *key)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_api_user_info *user = &check->user;
    struct dv_err err;

    dv_buf_init(&buf, KEY_BYTES_MAX);
    add_text(&buf, check->route->verb);
    add_text(&buf, check->route->subresources[check->i_subresource]);
    add_text(&buf, user->username);
    add_text(&buf, user->uid);
    for (size_t i = 0; i < user->n_groups; i++)
        add_text(&buf, user->groups[i]);
    for (size_t i = 0; i < user->n_extra; i++) {
        dv_buf_add_char(&buf, '=');
        add_text(&buf, user->extra[i].key);
        for (size_t k = 0; k < user->extra[i].value.n; k++)
            add_text(&buf, user->extra[i].value.v[k]);
    }
    dv_rest_sha256(dv_buf_str(&buf), key->bytes);
    return dv_buf_check(&buf, "the user", &err);
}

/* ---- questions ---- */

static void question_free(struct question *question)
{
    struct dv_node_auth *auth = question->auth;

    (void)dv_map_remove(&auth->questions,
                        (dv_str){(const char *)question->key.bytes, sizeof(question->key.bytes)});
    dv_link_remove(&question->link);
    dv_arena_free(question->arena);
    free(question);
}

static void complain(struct dv_node_auth *auth, const struct question *question,
                     const struct dv_err *err)
{
    uint64_t now_ms = dv_loop_now_ms(auth->loop);

    if (auth->is_closing ||
        (auth->complained_ms > 0 && now_ms - auth->complained_ms < COMPLAINT_MS))
        return;
    auth->complained_ms = now_ms;
    dv_log(DV_LOG_WARN,
           "serve: the API server does not say who a client of this node is, or what "
           "it may; it is refused",
           DV_F_C("asked_for", question->subject == RIGHT ? "a right" : "a token"), DV_F_ERR(err));
}

static void ask_next(struct dv_node_auth *auth, enum subject subject);

static void on_answer(struct dv_user_review *review, const struct dv_err *err)
{
    struct question *question = DV_CONTAINER(review, struct question, review);
    struct dv_node_auth *auth = question->auth;
    enum subject subject = question->subject;
    uint64_t now_ms = dv_loop_now_ms(auth->loop);
    struct dv_list checks;
    struct dv_link *link;

    if (err)
        complain(auth, question, err);
    else if (review->token)
        dv_review_cache_put(&auth->tokens, &question->key, review->token_status->authenticated,
                            &review->token_status->user, now_ms);
    else
        dv_review_cache_put(&auth->rights, &question->key, review->access_status->allowed, NULL,
                            now_ms);
    auth->n_asked[subject]--;
    dv_list_init(&checks);
    dv_list_move_all(&checks, &question->checks);
    question_free(question);
    while ((link = dv_list_shift(&checks)) != NULL) {
        struct dv_node_check *check = DV_CONTAINER(link, struct dv_node_check, link);

        if (err)
            end(check, subject == RIGHT ? DV_NODE_NOT_DECIDED : DV_NODE_IS_NOBODY);
        else
            go_on(check);
    }
    ask_next(auth, subject);
    close_if_done(auth);
}

static void ask(struct question *question)
{
    question->auth->n_asked[question->subject]++;
    question->is_asked = true;
    dv_user_review_start(question->auth->cluster, &question->review);
}

static void ask_next(struct dv_node_auth *auth, enum subject subject)
{
    struct dv_link *link;

    while (!auth->is_closing && auth->n_asked[subject] < places[subject].asked_max &&
           (link = dv_list_shift(&auth->waiting[subject])) != NULL) {
        auth->n_waiting[subject]--;
        ask(DV_CONTAINER(link, struct question, link));
    }
}

/* Fills the review in; its texts outlive the check, whose client may leave. */
static void prepare(struct question *question, const struct dv_node_check *check)
{
    struct dv_api_user_info user;

    question->review.done = on_answer;
    if (question->subject != RIGHT) {
        question->token.token = dv_str_copy(check->token, question->arena);
        question->review.token = &question->token;
        return;
    }
    dv_message_copy(&dv_message_user_info, &check->user, question->arena, &user);
    question->attributes = (struct dv_api_resource_attributes){
        .verb = check->route->verb, /* a constant, like the subresource */
        .version = DV_STR("v1"),
        .resource = DV_STR("nodes"),
        .subresource = check->route->subresources[check->i_subresource],
        .name = question->auth->node_name,
    };
    question->access = (struct dv_api_subject_access_review_spec){
        .resource_attributes = &question->attributes,
        .user = user.username,
        .uid = user.uid,
        .groups = user.groups,
        .n_groups = user.n_groups,
        .extra = user.extra,
        .n_extra = user.n_extra,
    };
    question->review.access = &question->access;
}

/* The check waits for the answer to its question, which is asked now, later, or was already. */
static void wait(struct dv_node_check *check, enum subject subject, const struct dv_review_key *key)
{
    struct dv_node_auth *auth = check->auth;
    struct question *question =
        dv_map_get(&auth->questions, (dv_str){(const char *)key->bytes, sizeof(key->bytes)});

    if (!question) {
        bool has_place = auth->n_asked[subject] < places[subject].asked_max;

        if (auth->is_closing ||
            (!has_place && auth->n_waiting[subject] >= places[subject].waiting_max)) {
            end(check, auth->is_closing ? DV_NODE_NOT_DECIDED : DV_NODE_IS_BUSY);
            return;
        }
        question = DV_ALLOC(struct question);
        question->auth = auth;
        question->key = *key;
        question->subject = subject;
        question->arena = dv_arena_new();
        dv_list_init(&question->checks);
        (void)dv_map_set(&auth->questions,
                         (dv_str){(const char *)question->key.bytes, sizeof(question->key.bytes)},
                         question); /* there was none */
        prepare(question, check);
        if (has_place) {
            ask(question);
        } else {
            dv_list_push(&auth->waiting[subject], &question->link);
            auth->n_waiting[subject]++;
        }
    }
    dv_list_push(&question->checks, &check->link);
}

/* ---- checks ---- */

/* Finds out who the client is. False: the check waits, or has ended. */
static bool find_user(struct dv_node_check *check)
{
    struct dv_node_auth *auth = check->auth;
    const struct dv_api_user_info *user;
    struct dv_review_key key;
    enum dv_review_answer answer;

    if (check->is_known || check->token.n == 0)
        return true;
    token_key(check, &key);
    answer = dv_review_cache_get(&auth->tokens, &key, dv_loop_now_ms(auth->loop), &user);
    if (answer == DV_ANSWER_YES) {
        dv_message_copy(&dv_message_user_info, user, check->arena, &check->user);
        check->is_known = true;
        return true;
    }
    if (answer == DV_ANSWER_NO)
        end(check, DV_NODE_IS_NOBODY);
    else
        wait(check, answer == DV_ANSWER_WAS_YES ? SEEN_TOKEN : NEW_TOKEN, &key);
    return false;
}

/* Does what can be done for the check now. */
static void go_on(struct dv_node_check *check)
{
    struct dv_node_auth *auth = check->auth;
    const struct dv_api_user_info *nobody;
    struct dv_review_key key;

    if (!find_user(check))
        return;
    for (; check->i_subresource < check->route->n_subresources; check->i_subresource++) {
        if (!right_key(check, &key))
            continue; /* nobody can be asked about such a user */
        switch (dv_review_cache_get(&auth->rights, &key, dv_loop_now_ms(auth->loop), &nobody)) {
        case DV_ANSWER_YES:
            end(check, DV_NODE_MAY);
            return;
        case DV_ANSWER_NO:
            break;
        case DV_ANSWER_UNKNOWN:
        case DV_ANSWER_WAS_YES:
            wait(check, RIGHT, &key);
            return;
        }
    }
    end(check, DV_NODE_MAY_NOT);
}

void dv_node_auth_start(struct dv_node_auth *auth, struct dv_node_check *check)
{
    check->auth = auth;
    go_on(check);
}

/* ---- life ---- */

struct dv_node_auth *dv_node_auth_new(struct dv_loop *loop, struct dv_cluster *cluster,
                                      dv_str node_name)
{
    static const struct dv_review_cache_limits of_tokens = {TOKEN_MS, TOKEN_MS, YES_MAX, NO_MAX};
    static const struct dv_review_cache_limits of_rights = {YES_MS, NO_MS, YES_MAX, NO_MAX};
    struct dv_node_auth *auth = DV_ALLOC(struct dv_node_auth);

    auth->loop = loop;
    auth->cluster = cluster;
    auth->node_name = node_name;
    dv_review_cache_init(&auth->tokens, &of_tokens);
    dv_review_cache_init(&auth->rights, &of_rights);
    dv_map_init(&auth->questions);
    for (size_t i = 0; i < DV_COUNT(places); i++)
        dv_list_init(&auth->waiting[i]);
    dv_list_init(&auth->ended);
    return auth;
}

void dv_node_auth_close(struct dv_node_auth *auth, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    auth->closed = closed;
    auth->closed_ctx = ctx;
    auth->is_closing = true;
    for (size_t at = 0; (entry = dv_map_next(&auth->questions, &at)) != NULL;) {
        struct question *question = entry->value;
        struct dv_link *link;

        if (question->is_asked) {
            dv_user_review_cancel(auth->cluster, &question->review);
            continue;
        }
        while ((link = dv_list_shift(&question->checks)) != NULL)
            end(DV_CONTAINER(link, struct dv_node_check, link), DV_NODE_NOT_DECIDED);
        question_free(question);
    }
    dv_task_post(&auth->task, auth->loop, on_task);
}
