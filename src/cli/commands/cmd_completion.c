/* cmd_completion.c - scripts that let shells ask davit what may come next.
 *
 * What they know is the tables' (complete.c): the scripts only put the question, and read files and
 * names where the answer says so. */
#include <stdio.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"

#define ANSWER_BYTES_MAX (1u << 20)

static const char bash[] =
    "# davit's words for bash: davit completion bash\n"
    "_davit() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \\t\\n' current head candidate\n"
    "    local -a words answer\n"
    "    read -ra words <<<\"$line\"\n"
    "    if [[ $line == *[[:space:]] ]]; then\n"
    "        words+=('')\n"
    "    fi\n"
    "    current=${words[-1]}\n"
    "    head=\n"
    "    COMPREPLY=()\n"
    "    mapfile -t answer < <(\"$1\" completion for -- \"${words[@]:1}\" 2>/dev/null)\n"
    "    case ${answer[0]-} in\n"
    "    :files | :folders)\n"
    "        compopt -o filenames\n"
    "        current=${current#--*=}\n"
    "        if [[ ${answer[0]} == :files ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
    "        else\n"
    "            mapfile -t COMPREPLY < <(compgen -d -- \"$current\")\n"
    "        fi\n"
    "        return\n"
    "        ;;\n"
    "    ':words '*)\n"
    "        read -ra words <<<\"${answer[0]#:words }\"\n"
    "        mapfile -t answer < <(\"$1\" \"${words[@]}\" 2>/dev/null)\n"
    "        ;;\n"
    "    ':names '*)\n"
    "        read -ra words <<<\"${answer[0]#:names }\"\n"
    "        mapfile -t answer < <(\"$1\" \"${words[@]}\" 2>/dev/null)\n"
    "        answer=(\"${answer[@]##*/}\")\n"
    "        head=${current%\"${current##*/}\"}\n"
    "        ;;\n"
    "    esac\n"
    "    for candidate in \"${answer[@]}\"; do\n"
    "        candidate=$head${candidate%%$'\\t'*}\n"
    "        # Readline takes what is after the last of its breaks for the word.\n"
    "        if [[ $candidate == \"$current\"* ]]; then\n"
    "            COMPREPLY+=(\"${candidate#\"${current%\"${current##*[=:]}\"}\"}\")\n"
    "        fi\n"
    "    done\n"
    "}\n"
    "complete -F _davit davit\n";

static const char zsh[] =
    "#compdef davit\n"
    "# davit's words for zsh: davit completion zsh\n"
    "_davit() {\n"
    "    local -a answer candidates\n"
    "    local line current=${words[CURRENT]}\n"
    "    answer=(\"${(@f)$(\"${words[1]}\" completion for -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    case ${answer[1]} in\n"
    "    :files | :folders)\n"
    "        compset -P '--*='\n"
    "        if [[ ${answer[1]} == :files ]]; then _files; else _files -/; fi\n"
    "        return\n"
    "        ;;\n"
    "    ':words '*)\n"
    "        answer=(\"${(@f)$(\"${words[1]}\" ${=answer[1]#:words } 2>/dev/null)}\")\n"
    "        compadd -- ${answer[@]}\n"
    "        return\n"
    "        ;;\n"
    "    ':names '*)\n"
    "        answer=(\"${(@f)$(\"${words[1]}\" ${=answer[1]#:names } 2>/dev/null)}\")\n"
    "        compadd -- \"${current%${current##*/}}${^answer[@]##*/}\"\n"
    "        return\n"
    "        ;;\n"
    "    esac\n"
    "    for line in ${answer}; do\n"
    "        candidates+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    _describe davit candidates\n"
    "}\n"
    "if [[ ${funcstack[1]} == _davit ]]; then\n"
    "    _davit \"$@\"\n"
    "else\n"
    "    compdef _davit davit\n"
    "fi\n";

static const char fish[] =
    "# davit's words for fish: davit completion fish\n"
    "function __davit_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l program $words[1]\n"
    "    set -e words[1]\n"
    "    set -l answer ($program completion for -- $words \"$current\" 2>/dev/null)\n"
    "    switch \"$answer[1]\"\n"
    "        case ':files'\n"
    "            __fish_complete_path $current\n"
    "        case ':folders'\n"
    "            __fish_complete_directories $current\n"
    "        case ':words *'\n"
    "            set -l question (string split ' ' -- $answer[1])\n"
    "            $program $question[2..-1] 2>/dev/null\n"
    "        case ':names *'\n"
    "            set -l head (string replace -r '[^/]*$' '' -- \"$current\")\n"
    "            set -l question (string split ' ' -- $answer[1])\n"
    "            for line in ($program $question[2..-1] 2>/dev/null)\n"
    "                echo $head(string replace -r '.*/' '' -- $line)\n"
    "            end\n"
    "        case '*'\n"
    "            printf '%s\\n' $answer\n"
    "    end\n"
    "end\n"
    "complete -c davit -f -a '(__davit_complete)'\n";

static const struct {
    const char *shell;
    const char *script;
} scripts[] = {
    {"bash", bash},
    {"zsh",  zsh },
    {"fish", fish},
};

static void answer(struct dv_cli *cli)
{
    struct dv_buf buf;

    dv_buf_init(&buf, ANSWER_BYTES_MAX);
    dv_cli_complete(cli->words + 1, cli->n_words - 1, cli->arena, &buf);
    (void)fputs(dv_buf_c(&buf), stdout);
    dv_buf_fini(&buf);
}

enum dv_exit dv_cmd_completion(struct dv_cli *cli)
{
    if (cli->n_words > 0 && dv_str_eq(cli->words[0], DV_STR("for"))) {
        answer(cli);
        return DV_EXIT_OK;
    }
    for (size_t i = 0; cli->n_words == 1 && i < DV_COUNT(scripts); i++)
        if (dv_str_eq(cli->words[0], dv_str_from_c(scripts[i].shell))) {
            (void)fputs(scripts[i].script, stdout);
            return DV_EXIT_OK;
        }
    return dv_cli_complain_usage("completion", "name a shell: bash, zsh or fish");
}
