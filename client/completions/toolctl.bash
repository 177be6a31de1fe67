# Completions of toolctl for bash. The words come from `toolctl __complete`, a value and its meaning a line.

_toolctl() {
    local rest=${COMP_LINE:0:COMP_POINT} bare word value meaning width=0 i
    local -a words=() places=() values=() meanings=()
    # Bash breaks words at = and : too. What no blank divides is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        bare=${rest#"${rest%%[![:space:]]*}"}
        word=${COMP_WORDS[i]}
        ((i == COMP_CWORD)) && word=$bare
        if ((i == 0)) || [[ $bare != "$rest" ]]; then
            words+=("$word")
            places+=("$i")
        else
            words[-1]+=$word
        fi
        rest=${bare#"$word"}
    done
    local current=${words[-1]}
    while IFS=$'\t' read -r value meaning; do
        values+=("$value")
        meanings+=("$meaning")
        ((${#value} > width)) && width=${#value}
    done < <("$1" __complete -- "${words[@]//[\\\"\']/}" 2>/dev/null)
    COMPREPLY=()
    if [[ ${values[0]-} == '>'* ]]; then
        _toolctl_command "${places[${values[0]#>}]}"
        return
    fi
    # Bash replaces only what stands behind the last of its word breaks.
    local head=
    [[ $current == *[=:]* ]] && head=${current%"${current##*[=:]}"}
    # Readline keeps an @ at the start in what it replaces, but not one further in.
    [[ ${current#"$head"} == ?*@* ]] && head=${current%"${current##*@}"}
    for i in "${!values[@]}"; do
        value=${values[i]#"$head"}
        # Beside several values stands what they mean, where bash only lists them (TAB twice is 63).
        if ((${#values[@]} > 1)) && [[ ${COMP_TYPE-} == 63 && -n ${meanings[i]} ]]; then
            printf -v value '%-*s  (%s)' "$((width - ${#head}))" "$value" "${meanings[i]}"
        fi
        COMPREPLY+=("$value")
    done
    [[ ${#values[@]} == 1 && ${values[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}

# What bash would offer for the command line that begins with this word: bash-completion knows, and without it we do
# what it would.
_toolctl_command() {
    local offset
    for offset in _comp_command_offset _command_offset; do
        if declare -F "$offset" >/dev/null; then
            "$offset" "$1"
            return
        fi
    done
    COMP_WORDS=("${COMP_WORDS[@]:$1}")
    ((COMP_CWORD -= $1))
    COMP_LINE=${COMP_WORDS[*]}
    COMP_POINT=${#COMP_LINE}
    local current=${COMP_WORDS[COMP_CWORD]}
    if ((COMP_CWORD == 0)); then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
    elif [[ $(complete -p -- "${COMP_WORDS[0]}" 2>/dev/null) =~ \ -F\ ([^ ]+) ]]; then
        "${BASH_REMATCH[1]}" "${COMP_WORDS[0]}" "$current" "${COMP_WORDS[COMP_CWORD - 1]}"
    fi
    # Nothing found: `-o default` offers files.
}

complete -o bashdefault -o default -o nosort -F _toolctl toolctl 2>/dev/null ||
    complete -o bashdefault -o default -F _toolctl toolctl
