# Completions of toolctl for bash. The words come from `toolctl __complete`, a value and its meaning a line.

_toolctl() {
    local line=${COMP_LINE:0:COMP_POINT} value meaning width=0
    local -a words values=() meanings=()
    read -ra words <<<"$line"
    # A space at the end begins a new word.
    [[ $line == *[[:space:]] ]] && words+=("")
    local current=${words[-1]}
    while IFS=$'\t' read -r value meaning; do
        values+=("$value")
        meanings+=("$meaning")
        ((${#value} > width)) && width=${#value}
    done < <("$1" __complete -- "${words[@]}" 2>/dev/null)
    # Bash replaces only what stands behind the last of its word breaks.
    local head=
    [[ $current == *[=:]* ]] && head=${current%"${current##*[=:]}"}
    # Readline keeps an @ at the start in what it replaces, but not one further in.
    [[ ${current#"$head"} == ?*@* ]] && head=${current%"${current##*@}"}
    COMPREPLY=()
    local i
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

complete -o bashdefault -o default -o nosort -F _toolctl toolctl 2>/dev/null ||
    complete -o bashdefault -o default -F _toolctl toolctl
