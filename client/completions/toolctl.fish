# Completions of toolctl for fish. The words come from `toolctl __complete`, a value and its meaning a line.

function __toolctl_complete
    set -l words (commandline -opc)
    # An empty current word is a word too.
    set -l current (commandline -ct)
    $words[1] __complete -- $words "$current" 2>/dev/null
end

# Behind -- stands somebody else's command line, with files of its own.
complete -c toolctl -n 'not contains -- -- (commandline -opc)' -f -k -a '(__toolctl_complete)'
