# Completions of toolctl for bash. The values come from `toolctl __complete`, one value and its meaning per line.

_toolctl() {
    local rest=${COMP_LINE:0:COMP_POINT} bare token value meaning width=0 i
    local -a args=() places=() values=() meanings=()
    # Bash also splits at = and :. Here only blanks split.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        bare=${rest#"${rest%%[![:space:]]*}"}
        token=${COMP_WORDS[i]}
        ((i == COMP_CWORD)) && token=$bare
        if ((i == 0)) || [[ $bare != "$rest" ]]; then
            args+=("$token")
            places+=("$i")
        else
            args[-1]+=$token
        fi
        rest=${bare#"$token"}
    done
    local current=${args[-1]}
    while IFS=$'\t' read -r value meaning; do
        values+=("$value")
        meanings+=("$meaning")
        ((${#value} > width)) && width=${#value}
    done < <("$1" __complete -- "${args[@]//[\\\"\']/}" 2>/dev/null)
    COMPREPLY=()
    if [[ ${values[0]-} == '>'* ]]; then
        _toolctl_command "${places[${values[0]#>}]}"
        return
    fi
    # Bash replaces only the part behind the last character at which it splits.
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

# The completions of the command line that begins at this argument, from bash-completion if it is there; without it we do
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
