/* cmd_ui.c - a link to davitd's page that signs in. Its token is good for two minutes, and the page
 * changes it for one of its own as the first thing it does: whoever finds the link later finds
 * nothing. */
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"

/* Long enough to carry the link to another window, or to another machine. */
#define BODY "{\"admin\": \"link\", \"lifetimeSeconds\": 120}"

/* Whether there is a screen, and a user to whom a browser belongs: one that runs as root reads
 * pages with the rights of root. */
static bool has_screen(void)
{
    return geteuid() != 0 && (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"));
}

/* Opens the link. The browser may be a child of what is started: it lives on, and must not hold the
 * output on which somebody waits for the link, nor write to it. */
static void open_link(dv_str link, struct dv_arena *arena)
{
    char program[] = "xdg-open";
    char *argv[] = {program, (char *)(uintptr_t)dv_str_to_c(link, arena), NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    (void)posix_spawn_file_actions_init(&actions);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        (void)posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    if (posix_spawnp(&pid, program, &actions, NULL, argv, environ) != 0)
        (void)fprintf(stderr, "davit: xdg-open cannot be run; open the link by hand\n");
    (void)posix_spawn_file_actions_destroy(&actions);
}

static enum dv_exit print_link(struct dv_cli_api *api)
{
    struct dv_cli *cli = api->cli;
    const struct dv_cli_ask ask = {
        .method = DV_STR("POST"),
        .path = DV_STR("/davit/v1/tokens"),
        .content_type = DV_STR("application/json"),
        .body = DV_STR(BODY),
    };
    struct dv_cli_answer answer;
    dv_str link;

    if (!dv_cli_api_ask(api, &ask, cli->arena, &answer))
        return api->exit;
    if (answer.failure)
        return dv_cli_api_complain(api, answer.failure, DV_STR("the page"));
    link = dv_str_printf(cli->arena, "%.*s/ui#link=%.*s&id=%.*s", DV_FMT(api->server),
                         DV_FMT(dv_cli_text(answer.doc, "", "token")),
                         DV_FMT(dv_cli_text(answer.doc, "", "id")));
    (void)printf("%.*s\n", DV_FMT(link));
    if (isatty(STDOUT_FILENO))
        (void)fprintf(stderr, "It signs in once, within two minutes.\n");
    (void)fflush(stdout);
    if (!cli->opens_nothing && has_screen())
        open_link(link, cli->arena);
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_ui(struct dv_cli *cli)
{
    struct dv_cli_api api;
    enum dv_exit exit;

    if (cli->n_words > 0)
        return dv_cli_complain_usage("ui", "it takes no words");
    exit = dv_cli_api_open(cli, &api);
    if (exit != DV_EXIT_OK)
        return exit;
    exit = print_link(&api);
    dv_cli_api_close(&api);
    return exit;
}
