#include "support/dvtest.h"

#include "base/buf.h"
#include "cli/terminal/progress.h"

#define TEXT_BYTES_MAX 4096u

/* Two steps of ten things each, one every second. */
static void work(struct dv_progress *progress, struct dv_buf *buf)
{
    uint64_t now_ms = 1000;

    for (int step = 0; step < 2; step++) {
        dv_progress_begin(progress, step == 0 ? "making" : "removing", now_ms, buf);
        for (size_t i = 1; i <= 10; i++) {
            now_ms += 1000;
            dv_progress_count(progress, i, 10, now_ms, buf);
            dv_progress_count(progress, i, 10, now_ms + 1, buf); /* too soon after */
        }
    }
    dv_progress_end(progress, buf);
}

static void a_terminal_has_one_line_a_step(void **state)
{
    struct dv_progress progress = {.is_on = true, .is_terminal = true};
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_progress_begin(&progress, "making", 1000, &buf);
    dv_progress_count(&progress, 1, 2, 1100, &buf); /* too soon */
    dv_progress_count(&progress, 1, 2, 1200, &buf);
    dv_progress_count(&progress, 2, 2, 1201, &buf); /* the last one is always shown */
    dv_progress_end(&progress, &buf);
    assert_string_equal(dv_buf_c(&buf),
                        "making ...\rmaking ... 1 of 2\033[K\rmaking ... 2 of 2\033[K\n");
    dv_buf_fini(&buf);
}

static void a_file_has_plain_lines_now_and_then(void **state)
{
    struct dv_progress progress = {.is_on = true};
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    work(&progress, &buf);
    assert_string_equal(dv_buf_c(&buf), "making ...\nremoving ...\n");
    dv_buf_clear(&buf);
    dv_progress_begin(&progress, "making", 0, &buf);
    dv_progress_count(&progress, 3, 9, 15000, &buf);
    dv_progress_count(&progress, 4, 9, 29999, &buf);
    dv_progress_count(&progress, 5, 9, 30000, &buf);
    dv_progress_end(&progress, &buf);
    assert_string_equal(dv_buf_c(&buf), "making ...\nmaking ... 3 of 9\nmaking ... 5 of 9\n");
    dv_buf_fini(&buf);
}

static void a_line_gives_way_to_what_is_printed(void **state)
{
    struct dv_progress progress = {.is_on = true, .is_terminal = true};
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_progress_begin(&progress, "cases", 1000, &buf);
    dv_buf_clear(&buf);
    progress.detail = DV_STR("prepare.one");
    dv_progress_count(&progress, 1, 9, 1200, &buf);
    dv_progress_wipe(&progress, &buf);
    dv_progress_wipe(&progress, &buf); /* there is none any more */
    dv_progress_count(&progress, 2, 9, 1201, &buf);
    dv_progress_wipe(&progress, &buf);
    dv_progress_end(&progress, &buf);
    assert_string_equal(dv_buf_c(&buf), "\rcases ... 1 of 9 (prepare.one)\033[K\r\033[K"
                                        "\rcases ... 2 of 9 (prepare.one)\033[K\r\033[K");
    dv_buf_clear(&buf);
    progress.is_terminal = false;
    dv_progress_begin(&progress, "cases", 1000, &buf);
    dv_progress_wipe(&progress, &buf); /* lines of a file stay, and come no sooner */
    dv_progress_count(&progress, 1, 9, 2000, &buf);
    assert_string_equal(dv_buf_c(&buf), "cases ...\n");
    dv_buf_fini(&buf);
}

static void what_is_soon_over_leaves_no_line_in_a_file(void **state)
{
    struct dv_progress progress = {.is_on = true, .is_short = true};
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_progress_begin(&progress, "waiting", 1000, &buf);
    dv_progress_count(&progress, 0, 1, 15999, &buf);
    assert_int_equal(buf.n, 0);
    dv_progress_count(&progress, 0, 1, 16000, &buf);
    assert_string_equal(dv_buf_c(&buf), "waiting ... 0 of 1\n");
    dv_buf_fini(&buf);
}

static void nothing_is_said_where_it_is_off(void **state)
{
    struct dv_progress progress = {.is_terminal = true};
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    work(&progress, &buf);
    assert_int_equal(buf.n, 0);
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_has_one_line_a_step),
        cmocka_unit_test(a_file_has_plain_lines_now_and_then),
        cmocka_unit_test(a_line_gives_way_to_what_is_printed),
        cmocka_unit_test(what_is_soon_over_leaves_no_line_in_a_file),
        cmocka_unit_test(nothing_is_said_where_it_is_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
