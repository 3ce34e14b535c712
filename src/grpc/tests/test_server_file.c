/* The file of a server's socket: whatever happens to it while the server runs, clients find it. */
#include "support/dvtest.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "grpc/tests/test_grpc_fixture.h"

static struct fixture *kept(void **state)
{
    struct fixture *fixture = *state;

    fixture->keeps_file = true;
    fixture_serve(fixture);
    return fixture;
}

/* A client that comes now is served. */
static void expect_service(struct fixture *fixture)
{
    struct probe probe = {.call = {.waits_for_ready = true}};

    if (fixture->channel)
        fixture_close_channel(fixture);
    fixture_connect(fixture, true);
    probe_start(&probe, fixture, TEST_ECHO, "x", 100000);
    wait_done(fixture, &probe);
    assert_int_equal(probe.err.code, DV_OK);
    assert_string_equal(dv_buf_c(&probe.got), "x;");
    probe_fini(&probe);
}

static void remove_file(const struct fixture *fixture)
{
    assert_int_equal(unlink(fixture->path), 0);
}

static void a_removed_socket_is_made_anew_with_its_mode(void **state)
{
    struct fixture *fixture = kept(state);
    struct stat info;

    remove_file(fixture);
    loop_wait_count(fixture->loop, &fixture->n_remade, 1);
    assert_int_equal(lstat(fixture->path, &info), 0);
    assert_int_equal(info.st_mode & 0777u, 0600);
    expect_service(fixture);
    assert_int_equal(fixture->n_remade_in_vain, 0);
}

static void one_that_is_moved_away_or_replaced_is_too(void **state)
{
    struct fixture *fixture = kept(state);
    char other[128];

    (void)snprintf(other, sizeof(other), "%s.old", fixture->path);
    assert_int_equal(rename(fixture->path, other), 0);
    loop_wait_count(fixture->loop, &fixture->n_remade, 1);
    advance(fixture, 1000);
    /* The old one again, which nobody listens on any more. */
    assert_int_equal(rename(other, fixture->path), 0);
    loop_wait_count(fixture->loop, &fixture->n_remade, 2);
    expect_service(fixture);
}

static void who_is_connected_stays_connected(void **state)
{
    struct fixture *fixture = kept(state);
    struct probe probe = {0};

    expect_service(fixture);
    remove_file(fixture);
    loop_wait_count(fixture->loop, &fixture->n_remade, 1);
    probe_start(&probe, fixture, TEST_ECHO, "still", 100000);
    wait_done(fixture, &probe);
    assert_string_equal(dv_buf_c(&probe.got), "still;");
    probe_fini(&probe);
}

static void a_removed_directory_is_made_anew_with_its_mode(void **state)
{
    struct fixture *fixture = kept(state);
    struct stat info;

    for (int i = 1; i <= 3; i++) {
        remove_file(fixture);
        assert_int_equal(rmdir(fixture->dir), 0);
        loop_wait_count(fixture->loop, &fixture->n_remade, i);
        assert_int_equal(stat(fixture->dir, &info), 0);
        assert_int_equal(info.st_mode & 0777u, 0700);
        advance(fixture, 1000);
    }
    expect_service(fixture);
}

static void another_server_in_its_place_is_left_alone_until_it_ends(void **state)
{
    struct fixture *fixture = kept(state);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, fixture->path, strlen(fixture->path));
    remove_file(fixture);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    loop_wait_count(fixture->loop, &fixture->n_remade_in_vain, 1);
    assert_err(&fixture->remade, DV_ALREADY_EXISTS, "another process listens on");
    for (int i = 0; i < 10; i++)
        advance(fixture, 33000);
    assert_true(fixture->n_remade_in_vain >= 10);
    assert_int_equal(fixture->n_remade, 0);
    assert_int_equal(close(fd), 0);
    advance(fixture, 33000);
    assert_int_equal(fixture->n_remade, 1);
    expect_service(fixture);
}

static void what_cannot_be_made_is_tried_again_with_growing_pauses(void **state)
{
    struct fixture *fixture = kept(state);
    int n_before;

    remove_file(fixture);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    loop_wait_count(fixture->loop, &fixture->n_remade_in_vain, 1);
    assert_err(&fixture->remade, DV_FAILED_PRECONDITION, "is not a socket");
    settle(fixture);
    n_before = fixture->n_remade_in_vain; /* each event was a reason to try */
    for (int i = 0; i < 600; i++)
        advance(fixture, 200);
    assert_in_range(fixture->n_remade_in_vain - n_before, 5, 12);
    assert_int_equal(rmdir(fixture->path), 0);
    loop_wait_count(fixture->loop, &fixture->n_remade, 1); /* at once: the directory is watched */
    expect_service(fixture);
}

static void who_removes_it_again_and_again_is_not_followed_at_any_pace(void **state)
{
    struct fixture *fixture = kept(state);

    remove_file(fixture);
    loop_wait_count(fixture->loop, &fixture->n_remade, 1);
    remove_file(fixture);
    settle(fixture);
    assert_int_equal(fixture->n_remade, 1);
    advance(fixture, 500);
    assert_int_equal(fixture->n_remade, 2);
    expect_service(fixture);
}

static void a_server_without_the_option_does_nothing(void **state)
{
    struct fixture *fixture = *state;

    fixture_serve(fixture);
    remove_file(fixture);
    advance(fixture, 60000);
    assert_int_not_equal(access(fixture->path, F_OK), 0);
}

static void closing_removes_the_file_that_was_made_anew(void **state)
{
    struct fixture *fixture = kept(state);

    remove_file(fixture);
    loop_wait_count(fixture->loop, &fixture->n_remade, 1);
    fixture_stop_serving(fixture, 0);
    settle(fixture);
    assert_int_equal(fixture->n_servers_closed, 1);
    assert_int_not_equal(access(fixture->path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removed_socket_is_made_anew_with_its_mode),
        cmocka_unit_test(one_that_is_moved_away_or_replaced_is_too),
        cmocka_unit_test(who_is_connected_stays_connected),
        cmocka_unit_test(a_removed_directory_is_made_anew_with_its_mode),
        cmocka_unit_test(another_server_in_its_place_is_left_alone_until_it_ends),
        cmocka_unit_test(what_cannot_be_made_is_tried_again_with_growing_pauses),
        cmocka_unit_test(who_removes_it_again_and_again_is_not_followed_at_any_pace),
        cmocka_unit_test(a_server_without_the_option_does_nothing),
        cmocka_unit_test(closing_removes_the_file_that_was_made_anew),
    };
    struct CMUnitTest with_fixture[DV_COUNT(tests)];

    for (size_t i = 0; i < DV_COUNT(tests); i++) {
        with_fixture[i] = tests[i];
        with_fixture[i].setup_func = fixture_start;
        with_fixture[i].teardown_func = fixture_end;
    }
    return cmocka_run_group_tests(with_fixture, NULL, NULL);
}
