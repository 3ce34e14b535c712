#include "voldir/voldir.h"

#include "base/defs.h"
#include "voldir/voldir_jobs.h"

/* Each operation is one dv_work: `run` on a worker does it and leaves how it ended, `done` on the
 * loop's thread tells. */

static void note(struct dv_voldir_work *priv, bool is_done)
{
    if (is_done)
        (void)dv_succeed(&priv->err);
}

/* What `done` is told: the loop's error when the job never began, else its own. */
static const struct dv_err *outcome(const struct dv_voldir_work *priv, const struct dv_err *err)
{
    if (err)
        return err;
    return priv->err.code == DV_OK ? NULL : &priv->err;
}

static void start(struct dv_voldir_work *priv, struct dv_loop *loop,
                  void (*run)(struct dv_work *work),
                  void (*done)(struct dv_work *work, const struct dv_err *err))
{
    priv->work = (struct dv_work){.run = run, .done = done};
    dv_work_start(&priv->work, loop);
}

void dv_voldir_cancel(struct dv_voldir_work *work)
{
    dv_work_cancel(&work->work);
}

/* ---- set up ---- */

static void run_set_up(struct dv_work *work)
{
    struct dv_voldir_set_up *op = DV_CONTAINER(work, struct dv_voldir_set_up, priv.work);

    note(&op->priv, dv_voldir_run_set_up(op, &op->priv.err));
}

static void on_set_up(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_set_up *op = DV_CONTAINER(work, struct dv_voldir_set_up, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_set_up(struct dv_voldir_set_up *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_set_up, on_set_up);
}

/* ---- tear down ---- */

static void run_tear_down(struct dv_work *work)
{
    struct dv_voldir_tear_down *op = DV_CONTAINER(work, struct dv_voldir_tear_down, priv.work);

    note(&op->priv, dv_voldir_run_tear_down(op, &op->priv.err));
}

static void on_tear_down(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_tear_down *op = DV_CONTAINER(work, struct dv_voldir_tear_down, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_tear_down(struct dv_voldir_tear_down *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_tear_down, on_tear_down);
}

/* ---- cgroups ---- */

static void run_cgroups(struct dv_work *work)
{
    struct dv_voldir_cgroups *op = DV_CONTAINER(work, struct dv_voldir_cgroups, priv.work);

    note(&op->priv, dv_voldir_run_cgroups(op, &op->priv.err));
}

static void on_cgroups(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_cgroups *op = DV_CONTAINER(work, struct dv_voldir_cgroups, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_cgroups(struct dv_voldir_cgroups *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_cgroups, on_cgroups);
}

/* ---- parts of volumes ---- */

static void run_sub_path(struct dv_work *work)
{
    struct dv_voldir_sub_path *op = DV_CONTAINER(work, struct dv_voldir_sub_path, priv.work);

    note(&op->priv, dv_voldir_run_sub_path(op, &op->priv.err));
}

static void on_sub_path(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_sub_path *op = DV_CONTAINER(work, struct dv_voldir_sub_path, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_sub_path(struct dv_voldir_sub_path *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_sub_path, on_sub_path);
}

/* ---- containers ---- */

static void run_container(struct dv_work *work)
{
    struct dv_voldir_container *op = DV_CONTAINER(work, struct dv_voldir_container, priv.work);

    note(&op->priv, dv_voldir_run_container(op, &op->priv.err));
}

static void on_container(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_container *op = DV_CONTAINER(work, struct dv_voldir_container, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_container(struct dv_voldir_container *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_container, on_container);
}

/* ---- last words ---- */

static void run_message(struct dv_work *work)
{
    struct dv_voldir_message *op = DV_CONTAINER(work, struct dv_voldir_message, priv.work);

    note(&op->priv, dv_voldir_run_message(op, &op->priv.err));
}

static void on_message(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_message *op = DV_CONTAINER(work, struct dv_voldir_message, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_message(struct dv_voldir_message *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_message, on_message);
}

/* ---- lists ---- */

static void run_list(struct dv_work *work)
{
    struct dv_voldir_list *op = DV_CONTAINER(work, struct dv_voldir_list, priv.work);

    note(&op->priv, dv_voldir_run_list(op, &op->priv.err));
}

static void on_list(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_list *op = DV_CONTAINER(work, struct dv_voldir_list, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_list(struct dv_voldir_list *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_list, on_list);
}

/* ---- logs ---- */

static void run_remove_logs(struct dv_work *work)
{
    struct dv_voldir_remove_logs *op = DV_CONTAINER(work, struct dv_voldir_remove_logs, priv.work);

    note(&op->priv, dv_voldir_run_remove_logs(op, &op->priv.err));
}

static void on_remove_logs(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_remove_logs *op = DV_CONTAINER(work, struct dv_voldir_remove_logs, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_remove_logs(struct dv_voldir_remove_logs *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_remove_logs, on_remove_logs);
}

/* ---- logs that grow ---- */

static void run_rotate(struct dv_work *work)
{
    struct dv_voldir_rotate *op = DV_CONTAINER(work, struct dv_voldir_rotate, priv.work);

    note(&op->priv, dv_voldir_run_rotate(op, &op->priv.err));
}

static void on_rotated(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_rotate *op = DV_CONTAINER(work, struct dv_voldir_rotate, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_rotate(struct dv_voldir_rotate *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_rotate, on_rotated);
}

static void run_unrotate(struct dv_work *work)
{
    struct dv_voldir_unrotate *op = DV_CONTAINER(work, struct dv_voldir_unrotate, priv.work);

    note(&op->priv, dv_voldir_run_unrotate(op, &op->priv.err));
}

static void on_unrotated(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_unrotate *op = DV_CONTAINER(work, struct dv_voldir_unrotate, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_unrotate(struct dv_voldir_unrotate *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_unrotate, on_unrotated);
}

/* ---- reading a log ---- */

static void run_read_log(struct dv_work *work)
{
    struct dv_voldir_read_log *op = DV_CONTAINER(work, struct dv_voldir_read_log, priv.work);

    note(&op->priv, dv_voldir_run_read_log(op, &op->priv.err));
}

static void on_read_log(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_read_log *op = DV_CONTAINER(work, struct dv_voldir_read_log, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_read_log(struct dv_voldir_read_log *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_read_log, on_read_log);
}

/* ---- links to logs ---- */

static void run_links(struct dv_work *work)
{
    struct dv_voldir_links *op = DV_CONTAINER(work, struct dv_voldir_links, priv.work);

    note(&op->priv, dv_voldir_run_links(op, &op->priv.err));
}

static void on_links(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_links *op = DV_CONTAINER(work, struct dv_voldir_links, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_links(struct dv_voldir_links *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_links, on_links);
}

static void run_clean_links(struct dv_work *work)
{
    struct dv_voldir_clean_links *op = DV_CONTAINER(work, struct dv_voldir_clean_links, priv.work);

    note(&op->priv, dv_voldir_run_clean_links(op, &op->priv.err));
}

static void on_clean_links(struct dv_work *work, const struct dv_err *err)
{
    struct dv_voldir_clean_links *op = DV_CONTAINER(work, struct dv_voldir_clean_links, priv.work);

    op->done(op, outcome(&op->priv, err));
}

void dv_voldir_clean_links(struct dv_voldir_clean_links *op, struct dv_loop *loop)
{
    start(&op->priv, loop, run_clean_links, on_clean_links);
}
