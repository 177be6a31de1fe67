# Completions of toolctl for fish. The words come from `toolctl __complete`, a value and its meaning a line.

function __toolctl_complete
    set -l words (commandline -opc)
    # An empty current word is a word too.
    set -l current (commandline -ct)
    set -l offered ($words[1] __complete -- $words "$current" 2>/dev/null)
    if string match -q -- '>*' "$offered[1]"
        # From this word on it is somebody else's command line.
        set -l first (math (string sub -s 2 -- $offered[1]) + 1)
        set -l theirs
        test $first -le (count $words); and set theirs (string escape -- $words[$first..-1])
        complete -C (string join ' ' -- $theirs "$current")
    else if test -z "$offered"; and contains -- -- $words
        __fish_complete_path "$current"
    else
        printf '%s\n' $offered
    end
end

complete -c toolctl -f -k -a '(__toolctl_complete)'
