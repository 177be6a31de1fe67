# Completions of toolctl for fish. The values come from `toolctl __complete`, one value and its meaning per line.

function __toolctl_complete
    set -l args (commandline -opc)
    # An empty current argument counts too.
    set -l current (commandline -ct)
    set -l offered ($args[1] __complete -- $args "$current" 2>/dev/null)
    if string match -q -- '>*' "$offered[1]"
        # From this argument on it is another program's command line.
        set -l first (math (string sub -s 2 -- $offered[1]) + 1)
        set -l theirs
        test $first -le (count $args); and set theirs (string escape -- $args[$first..-1])
        complete -C (string join ' ' -- $theirs "$current")
    else if test -z "$offered"; and contains -- -- $args
        __fish_complete_path "$current"
    else
        printf '%s\n' $offered
    end
end

complete -c toolctl -f -k -a '(__toolctl_complete)'
