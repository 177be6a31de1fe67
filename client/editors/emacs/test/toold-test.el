;;; toold-test.el --- Tests of toold.el with a real daemon  -*- lexical-binding: t -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `tests/doors/emacs.rs' runs these in a home of their own.  By hand, with `toolctl' and `toold' in PATH and
;; HOME, XDG_RUNTIME_DIR and XDG_STATE_HOME set to empty directories:
;;
;;   emacs -Q --batch -L .. -l toold-test.el -f toold-test-run

;;; Code:

(require 'ert)
(require 'toold)

;; An Emacs that is unpacked beside the build cannot compile the stand-ins that `cl-letf' needs for primitives.
(defvar native-comp-enable-subr-trampolines)
(setq native-comp-enable-subr-trampolines nil)

(defconst toold-test-seconds 60 "The time limit of everything that waits here.")

(defvar toold-test-messages nil "The messages of the test that runs, newest first.")

(defmacro toold-test-until (&rest body)
  "Wait until BODY returns non-nil, and return that."
  (declare (indent 0) (debug t))
  `(let ((until (+ (float-time) toold-test-seconds)) value)
     (while (not (setq value (progn ,@body)))
       (when (> (float-time) until) (ert-fail (list "waited in vain for" ',body (toold-test-state))))
       (accept-process-output nil 0.05))
     value))

(defun toold-test-state ()
  "Return what a failed test needs to be understood."
  (list :messages toold-test-messages
        :buffers (mapcar (lambda (buffer) (cons (buffer-name buffer) (with-current-buffer buffer (buffer-string))))
                         (cl-remove-if-not (lambda (buffer) (string-match-p "\\*toold" (buffer-name buffer))) (buffer-list)))))

(defmacro toold-test (name &rest body)
  "Define the test NAME with BODY, which leaves no buffers and no processes."
  (declare (indent 1) (debug t))
  `(ert-deftest ,name ()
     (let ((toold-test-messages nil) (default-directory (file-name-as-directory (getenv "HOME"))))
       (unwind-protect
           (progn (advice-add 'message :before #'toold-test-note)
                  ,@body)
         (advice-remove 'message #'toold-test-note)
         (toold-mode-line -1)
         (setq toold-event-functions nil)
         (dolist (buffer (buffer-list))
           (when (string-match-p "\\`\\*toold" (buffer-name buffer))
             (let ((kill-buffer-query-functions nil)) (kill-buffer buffer))))
         (toold-request "kill" '(:all t :grace_ms 100))
         (toold-request "forget" '(:older_than_ms 0))
         (toold-disconnect)
         (setq toold--last-seq nil toold--processes nil)
         (clrhash toold--questions)))))

(defun toold-test-note (format &rest arguments)
  "Note the message FORMAT with ARGUMENTS, if it is shown."
  (when (and format (not inhibit-message)) (push (apply #'format-message format arguments) toold-test-messages)))

(defun toold-test-exec (&rest params)
  "Start a process with PARAMS and return its id."
  (plist-get (toold-request "exec" params) :id))

(defun toold-test-text (buffer)
  "Return the text of BUFFER."
  (with-current-buffer buffer (buffer-substring-no-properties (point-min) (point-max))))

(defun toold-test-output (buffer)
  "Return the output in the compilation BUFFER: no head, and no time at its end."
  (let* ((text (toold-test-text buffer))
         (start (progn (string-match "\n\n.*\n" text) (match-end 0)))
         (end (string-match " at [A-Z][a-z][a-z] [^\n]+[\n]*\\'" text start)))
    (substring text start end)))

(defun toold-test-ended (buffer)
  "Wait until BUFFER shows the end of its process, and return its text."
  (toold-test-until (and (null (buffer-local-value 'toold--on-exit buffer)) (toold-test-text buffer))))

(defun toold-test-rows ()
  "Return name and state of the rows of the list."
  (with-current-buffer "*toold*"
    (mapcar (lambda (entry) (list (substring-no-properties (aref (cadr entry) 0)) (substring-no-properties (aref (cadr entry) 1))))
            tabulated-list-entries)))

(defun toold-test-select (name)
  "Put point on the row of the process NAME in the list."
  (set-buffer "*toold*")
  (goto-char (point-min))
  (while (not (equal name (and (tabulated-list-get-entry) (substring-no-properties (aref (tabulated-list-get-entry) 0)))))
    (when (eobp) (ert-fail (list "no row" name)))
    (forward-line 1)))

(defun toold-test-press (key)
  "Run the command of KEY in the current buffer, as if it were typed."
  (let ((command (key-binding (kbd key))))
    (should (commandp command))
    (call-interactively command)))

(defun toold-test-kill-daemon ()
  "Kill the daemon with SIGKILL, and return its pid when it is gone."
  (let ((pid (plist-get (toold-request "daemon.info" nil) :pid)))
    (signal-process pid 'KILL)
    ;; Not by `accept-process-output': this Emacs must not notice it here.
    (while (not (member (alist-get 'state (process-attributes pid)) '(nil "Z")))
      (sleep-for 0.01))
    pid))

(toold-test toold-test-a-call-starts-the-daemon-once-if-there-is-none
  (toold-request "daemon.shutdown" nil)
  (toold-disconnect)
  (toold-test-until (not (file-exists-p (toold-socket-path))))
  (let ((starts 0))
    (cl-letf* ((start (symbol-function 'toold--start-daemon))
               ((symbol-function 'toold--start-daemon) (lambda () (cl-incf starts) (funcall start))))
      (should (equal (plist-get (toold-request "list" nil) :processes) []))
      (should (equal (plist-get (toold-request "list" nil) :processes) [])))
    (should (equal starts 1))))

(toold-test toold-test-a-daemon-that-cannot-start-is-reported-with-the-reason
  (toold-disconnect)
  (let ((toold-socket (expand-file-name "none/toold.sock")) (toold-program "false"))
    (should (equal (cadr (should-error (toold-request "list" nil) :type 'user-error)) "The daemon does not start: ")))
  (let ((toold-socket (expand-file-name "none/toold.sock")) (toold-program "no-such-program"))
    (should (equal (cadr (should-error (toold-request "list" nil) :type 'user-error))
                   "no-such-program is not in `exec-path': install toold, or set `toold-program'"))))

(toold-test toold-test-an-error-of-the-daemon-is-a-user-error-with-its-text
  (should (equal (should-error (toold-request "poll" '(:id "ghost")))
                 '(user-error "no process \"ghost\"; `list` shows what there is"))))

(toold-test toold-test-text-is-unicode-both-ways
  (let ((result (toold-request "exec" '(:argv ["/bin/sh" "-c" "echo \"grüß $1 €\"; exit 5" "sh" "日本"] :yield_ms 30000))))
    (should (equal (list (plist-get result :exit_code) (plist-get result :output)) '(5 "grüß 日本 €\n")))))

(toold-test toold-test-the-list-follows-starts-questions-and-exits-by-events
  (let ((toold-list-interval 3600))
    (toold-list)
    (should (equal (toold-test-rows) nil))
    (toold-test-exec :command "read a; exit 3" :login :json-false :name "work" :stdin "pipe")
    (toold-test-until (equal (toold-test-rows) '(("work" "asks"))))
    (toold-request "submit" '(:id "work" :data "go"))
    (toold-test-until (equal (toold-test-rows) '(("work" "exited 3"))))))

(toold-test toold-test-the-list-shows-questions-first-and-the-prompt
  (toold-test-exec :command "printf 'Sure? '; read a" :login :json-false :name "ask" :pty t)
  (toold-test-exec :command "echo up; exec sleep 300" :login :json-false :name "web")
  (toold-list)
  (toold-test-until (equal (toold-test-rows) '(("ask" "asks") ("web" "running"))))
  (toold-test-select "ask")
  (should (equal (substring-no-properties (aref (tabulated-list-get-entry) 4)) "Sure? ")))

(toold-test toold-test-keys-of-the-list-kill-answer-and-run-again
  (let ((old (toold-test-exec :command "read a; echo \"got $a\"; read b" :login :json-false :name "job" :stdin "pipe")))
    (toold-list)
    (toold-test-until (equal (toold-test-rows) '(("job" "asks"))))
    (toold-test-select "job")
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "tea")))
      (toold-test-press "i"))
    (should (equal (plist-get (toold-request "wait" (list :id old :until '(:match "got tea"))) :status) "matched"))
    (toold-test-select "job")
    (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) t)))
      (toold-test-press "k"))
    (toold-test-until (equal (toold-test-rows) '(("job" "SIGTERM"))))
    (toold-test-until (member "toold: job is killed (SIGTERM)" toold-test-messages))
    (toold-test-select "job")
    (toold-test-press "r")
    (toold-test-until (equal (toold-test-rows) '(("job" "asks") ("job" "SIGTERM"))))
    (let ((new (plist-get (toold-request "poll" '(:id "job" :fields ["id" "labels" "command"])) :id)))
      (should-not (equal old new)))))

(toold-test toold-test-a-log-has-the-output-and-its-end
  (toold-test-exec :command "echo one; echo two; exit 4" :login :json-false :name "log")
  (toold-list)
  (toold-test-until (equal (toold-test-rows) '(("log" "exited 4"))))
  (toold-test-select "log")
  (toold-test-press "RET")
  (should (equal (toold-test-ended (get-buffer "*toold log log*")) "one\ntwo\n\nlog exited abnormally with code 4\n")))

(toold-test toold-test-a-log-shows-colours-and-the-last-state-of-a-progress-bar
  (toold-log (toold-test-exec :command "printf '10%%\\r20%%\\r99%%\\n\\033[31mred\\033[0m plain\\n'" :login :json-false :name "bar"))
  (should (equal (toold-test-ended (get-buffer "*toold log bar*")) "99%\nred plain\n\nbar finished\n"))
  (with-current-buffer "*toold log bar*"
    (goto-char (point-min))
    (search-forward "re")
    (should (get-char-property (point) 'face))))

(toold-test toold-test-a-compilation-is-in-compilation-mode-and-next-error-works
  (with-temp-file "broken.c" (insert "int one;\nint two\nint three;\n"))
  (let ((buffer (toold-compile "echo 'broken.c:2:4: error: expected ;'; echo 'make: *** [all] Error 1' >&2; exit 2")))
    (toold-test-ended buffer)
    (should (equal (toold-test-output buffer)
                   "broken.c:2:4: error: expected ;\nmake: *** [all] Error 1\n\nCompilation exited abnormally with code 2"))
    (with-current-buffer buffer
      (should (derived-mode-p 'compilation-mode))
      (should (equal toold-exit-code 2)))
    (next-error)
    (should (equal (with-current-buffer "broken.c" (list (line-number-at-pos) (current-column))) '(2 3)))
    (kill-buffer "broken.c")))

(toold-test toold-test-a-compilation-has-the-environment-and-the-directory-of-emacs
  (let* ((process-environment (append '("TOOLD_TEST=grün" "TOOLD_BYTES=a\377b" "HOME_GONE") process-environment))
         (buffer (toold-compile "echo \"$TOOLD_TEST $INSIDE_EMACS $TERM\"; printf %s \"$TOOLD_BYTES\" | od -An -tx1; pwd")))
    (toold-test-ended buffer)
    (should (equal (toold-test-output buffer)
                   (format "grün %s,compile dumb\n 61 ff 62\n%s\n\nCompilation finished" emacs-version (directory-file-name default-directory))))))

(toold-test toold-test-all-of-a-long-output-is-shown-once-and-in-order
  (let* ((count 60000)
         (buffer (toold-compile (format "seq -f 'line %%.0f ü' 1 %d; exit 1" count))))
    (toold-test-ended buffer)
    ;; As digests: a difference of megabytes is not readable.
    (should (equal (secure-hash 'sha256 (toold-test-output buffer))
                   (secure-hash 'sha256 (concat (mapconcat (lambda (n) (format "line %d ü\n" n)) (number-sequence 1 count) "")
                                                "\nCompilation exited abnormally with code 1"))))))

(toold-test toold-test-another-emacs-comes-back-to-a-compilation-that-outlived-the-first
  (let* ((command "echo before; read -r line < gate; echo \"after $line\"; exit 7")
         (library (locate-library "toold.el")))
    (call-process "mkfifo" nil nil nil "gate")
    ;; The first Emacs starts it and exits at once.
    (should (equal 0 (call-process (or (getenv "TOOLD_TEST_EMACS") (car command-line-args)) nil nil nil "--batch" "-Q" "-l" library
                                   "--eval" (format "(toold-compile %S)" command))))
    (let* ((process (car (toold--update)))
           (buffer (toold-compile-attach (plist-get process :id))))
      (should (equal (plist-get process :status) "running"))
      (toold-test-until (string-match-p "^before$" (toold-test-text buffer)))
      (with-temp-file "gate" (insert "the pause\n"))
      (toold-test-ended buffer)
      (should (equal (toold-test-output buffer) "before\nafter the pause\n\nCompilation exited abnormally with code 7"))
      ;; And once more, after its end.
      (kill-buffer buffer)
      (setq buffer (toold-compile-attach (plist-get process :id)))
      (toold-test-ended buffer)
      (should (equal (toold-test-output buffer) "before\nafter the pause\n\nCompilation exited abnormally with code 7"))
      (should (equal (buffer-local-value 'toold-exit-code buffer) 7)))
    (delete-file "gate")))

(toold-test toold-test-killing-the-buffer-of-a-compilation-leaves-it-running
  (let* ((buffer (toold-compile "echo here; exec sleep 300"))
         (id (buffer-local-value 'toold--id buffer)))
    (toold-test-until (string-match-p "^here$" (toold-test-text buffer)))
    (kill-buffer buffer)
    (should (equal (plist-get (toold--inspect id) :status) "running"))))

(toold-test toold-test-a-compilation-that-is-killed-names-the-signal
  (let ((buffer (toold-compile "exec sleep 300")))
    (with-current-buffer buffer
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) t)))
        (toold-test-press "C-c C-k"))
      (toold-test-ended buffer)
      (should (equal (toold-test-output buffer) "\nCompilation ended by SIGTERM"))
      (should (equal toold-exit-code 143)))))

(toold-test toold-test-a-killed-daemon-loses-no-output-and-no-event-and-is-reported-once
  (cl-letf* ((events nil)
             (starts 0)
             (start (symbol-function 'toold--start-daemon-later))
             ((symbol-function 'toold--start-daemon-later) (lambda () (cl-incf starts) (funcall start))))
    (setq toold-event-functions (list (lambda (event) (push (cons (plist-get event :seq) (plist-get event :type)) events))))
    (toold-list)
    (call-process "mkfifo" nil nil nil "gate2")
    (let ((buffer (toold-compile "echo before; read -r line < gate2; echo \"after $line\"; exit 6")))
      (toold-test-until (string-match-p "^before$" (toold-test-text buffer)))
      (toold-test-until events)
      (let ((pid (toold-test-kill-daemon)))
        ;; It ends while no daemon runs, and nothing but Emacs starts the next one.
        (with-temp-file "gate2" (insert "the crash\n"))
        (toold-test-ended buffer)
        (should (equal (toold-test-output buffer) "before\nafter the crash\n\nCompilation exited abnormally with code 6"))
        (should-not (equal pid (plist-get (toold-request "daemon.info" nil) :pid))))
      (toold-test-until (rassoc "closed" events))
      (setq events (nreverse events))
      (should (equal (mapcar #'cdr events) '("started" "exited" "closed")))
      (should (equal (mapcar #'car events) (number-sequence (caar events) (+ 2 (caar events)))))
      (toold-test-until (equal (cadr (car (toold-test-rows))) "exited 6"))
      (should (equal starts 1))
      (should (equal (cl-remove-if-not (lambda (text) (string-match-p "gone\\|connect\\|jsonrpc\\|Server" text)) toold-test-messages)
                     '("toold: the daemon was gone; connected again, and everything is resumed"))))
    (delete-file "gate2")))

(toold-test toold-test-output-that-flows-while-the-daemon-is-killed-twice-is-shown-once-and-in-order
  (let ((buffer (toold-compile "i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo \"line $i\"; sleep 0.005; done; exit 4")))
    (dolist (seen '("^line 20$" "^line 300$"))
      (toold-test-until (string-match-p seen (toold-test-text buffer)))
      (toold-test-kill-daemon))
    (toold-test-ended buffer)
    (should (equal (toold-test-output buffer)
                   (concat (mapconcat (lambda (n) (format "line %d\n" n)) (number-sequence 1 600) "")
                           "\nCompilation exited abnormally with code 4")))))

(toold-test toold-test-a-call-that-a-killed-daemon-did-not-answer-starts-nothing-twice
  (toold-request "list" nil)
  (let ((key (toold--key)))
    (toold-request "exec" (list :command "exec sleep 300" :login :json-false :request_id key))
    (toold-test-kill-daemon)
    (toold-request "exec" (list :command "exec sleep 300" :login :json-false :request_id key))
    (should (equal 1 (length (toold--update))))))

(toold-test toold-test-a-process-with-pipes-is-attached-in-comint
  (let ((id (toold-shell-command "while read -r a; do echo \"<$a>\"; done; echo bye; exit 9")))
    (with-current-buffer (format "*toold %s*" id)
      (should (derived-mode-p 'comint-mode))
      (dolist (text '("grün" "two"))
        (goto-char (point-max))
        (insert text)
        (toold-test-press "RET")
        (toold-test-until (string-match-p (format "^<%s>$" text) (toold-test-text (current-buffer)))))
      (toold-test-press "C-c C-d")
      (should (equal (toold-test-ended (current-buffer))
                     (format "grün\n<grün>\ntwo\n<two>\nbye\n\n%s exited abnormally with code 9\n" id))))))

(toold-test toold-test-the-line-that-ends-a-process-is-sent-without-an-error
  (dolist (before (list #'ignore #'toold-test-kill-daemon))
    (let ((id (toold-shell-command "read -r a; echo \"got $a\"")))
      (with-current-buffer (format "*toold %s*" id)
        (toold-test-until toold--subscription)
        (goto-char (point-max))
        (insert "x")
        (funcall before)
        ;; The answer comes last: the end of the process is shown while the line is sent.
        (cl-letf* ((submit (symbol-function 'toold--submit))
                   ((symbol-function 'toold--submit)
                    (lambda (&rest arguments)
                      (apply submit arguments)
                      (toold-test-ended (current-buffer))
                      (sleep-for 0.2))))
          (toold-test-press "RET"))
        (should (equal (toold-test-text (current-buffer)) (format "x\ngot x\n\n%s finished\n" id)))
        (toold-test-until (not (get-buffer-process (current-buffer))))))))

(toold-test toold-test-output-after-the-end-of-an-attached-process-is-shown
  (let* (failures
         (id (cl-letf* ((message (symbol-function 'message))
                        ((symbol-function 'message)
                         (lambda (format &rest arguments)
                           (when (and format (string-match-p "was not shown" format)) (push arguments failures))
                           (apply message format arguments))))
               (let ((id (toold-shell-command "(sleep 0.7; echo late) & echo hi")))
                 (with-current-buffer (format "*toold %s*" id)
                   (toold-test-until (string-suffix-p "late\n" (toold-test-text (current-buffer)))))
                 id))))
    (with-current-buffer (format "*toold %s*" id)
      (should (equal (toold-test-text (current-buffer)) (format "hi\n\n%s finished\nlate\n" id))))
    (should-not failures)))

(toold-test toold-test-a-prompt-for-a-password-on-a-pipe-is-read-hidden
  (let (asked)
    (cl-letf (((symbol-function 'read-passwd) (lambda (prompt &rest _) (setq asked prompt) (copy-sequence "hunter2"))))
      (let ((id (toold-shell-command "printf 'Password: '; read -r a; echo \"got ${#a}\"")))
        (should (equal (toold-test-ended (get-buffer (format "*toold %s*" id))) (format "Password: got 7\n\n%s finished\n" id)))
        (should (equal asked "Password: "))))))

(toold-test toold-test-a-question-without-echo-is-read-hidden-and-kept-secret
  (let ((id (toold-test-exec :command "stty -echo; printf 'Passphrase: '; read -r a; stty echo; echo; echo \"got ${#a}\"" :login :json-false :pty t :name "login"))
        asked)
    (toold-list)
    (toold-test-until (equal (toold-test-rows) '(("login" "asks"))))
    (toold-test-until (member "toold: login asks: Passphrase:  (M-x toold-answer)" toold-test-messages))
    (cl-letf (((symbol-function 'read-passwd) (lambda (prompt &rest _) (setq asked prompt) (concat "sword" "fish")))
              ((symbol-function 'read-string) (lambda (&rest _) (ert-fail "it was read in the open"))))
      (toold-answer id))
    (should (equal asked "login: Passphrase: "))
    (should (equal (plist-get (toold-request "wait" (list :id id :until "closed")) :status) "exited"))
    (should (equal (plist-get (toold-request "poll" (list :id id :cursor 0)) :output) "Passphrase: \r\ngot 9\r\n"))
    (should-not (cl-some (lambda (buffer) (string-match-p (concat "sword" "fish") (toold-test-text buffer))) (buffer-list)))))

(toold-test toold-test-a-question-with-echo-is-read-in-the-open
  (let ((id (toold-test-exec :command "printf 'Overwrite? [y/N] '; read -r a; echo \"you typed $a\"" :login :json-false :pty t :name "setup"))
        asked)
    (toold-list)
    (toold-test-until (equal (toold-test-rows) '(("setup" "asks"))))
    (cl-letf (((symbol-function 'read-string) (lambda (prompt &rest _) (setq asked prompt) "y")))
      (toold-answer id))
    (should (equal asked "setup: Overwrite? [y/N] "))
    (should (equal (plist-get (toold-request "wait" (list :id id :until '(:match "you typed y"))) :status) "matched"))))

(ert-deftest toold-test-both-forms-of-needs-input-are-understood ()
  (let ((toold--questions (make-hash-table :test #'equal)))
    (should (equal (toold--question '(:id "a" :needs_input nil)) nil))
    (should (equal (toold--question '(:id "a" :needs_input :json-false)) nil))
    (should (equal (toold--question '(:id "a" :needs_input (:since "2026-11-16T03:28:50.123Z" :prompt "Go? " :echo :json-false)))
                   '(:prompt "Go? " :echo :json-false)))
    (should (equal (toold--question '(:id "a" :needs_input t :pty t)) '(:prompt "" :echo :json-false)))
    (should (equal (toold--question '(:id "a" :needs_input t :pty :json-false)) '(:prompt "" :echo nil)))
    (puthash "a" '(:prompt "Really? " :echo t) toold--questions)
    (should (equal (toold--question '(:id "a" :needs_input t :pty t)) '(:prompt "Really? " :echo t)))))

(toold-test toold-test-a-process-with-a-terminal-is-attached-in-term
  (let ((id (toold-shell-command "printf 'Name: '; read -r a; echo \"hello $a\"; exec sleep 300" t)))
    (with-current-buffer (format "*toold %s*" id)
      (should (derived-mode-p 'term-mode))
      (toold-test-until (string-match-p "Name:" (toold-test-text (current-buffer))))
      (term-send-raw-string "Grace\r")
      (toold-test-until (string-match-p "hello Grace" (toold-test-text (current-buffer))))
      (kill-buffer))
    (should (equal (plist-get (toold--inspect id) :status) "running"))))

(toold-test toold-test-processes-that-look-equal-can-each-be-chosen
  (let (ids offered)
    (dotimes (_ 2)
      (push (plist-get (toold-request "exec" '(:command "exit 3" :login :json-false :name "job" :yield_ms 30000)) :id) ids))
    (toold-request "exec" '(:command "exit 4" :login :json-false :name "job" :yield_ms 30000))
    (dolist (id ids)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt choices &rest _)
                   (setq offered (mapcar #'car choices))
                   (car (rassoc id choices)))))
        (should (equal (toold--read "Log: ") id))))
    (should (equal offered (cons "job  exited 4  exit 4" (mapcar (lambda (id) (concat "job  exited 3  exit 3  " id)) ids))))))

(toold-test toold-test-the-mode-line-counts-what-runs-and-what-asks
  (toold-mode-line 1)
  (should (equal (toold--mode-line-text) ""))
  (toold-test-exec :command "exec sleep 300" :login :json-false)
  (toold-test-until (equal (substring-no-properties (toold--mode-line-text)) " toold: 1 run"))
  (toold-test-exec :command "read a" :login :json-false :stdin "pipe" :name "ask")
  (toold-test-until (equal (substring-no-properties (toold--mode-line-text)) " toold: 2 run, 1 asks"))
  (toold-request "submit" '(:id "ask" :data "x"))
  (toold-test-until (equal (substring-no-properties (toold--mode-line-text)) " toold: 1 run"))
  (should (memq 'toold--mode-line global-mode-string))
  (toold-mode-line -1)
  (should-not (memq 'toold--mode-line global-mode-string)))

(defun toold-test-run ()
  "Run all tests, end the daemon, and exit with the result."
  (let* ((text-quoting-style 'grave)
         (stats (ert-run-tests-batch (or (getenv "TOOLD_TEST_SELECTOR") t)))
         (failed (ert-stats-completed-unexpected stats)))
    (toold-request "daemon.shutdown" '(:kill t))
    (kill-emacs (if (zerop failed) 0 1))))

(provide 'toold-test)
;;; toold-test.el ends here
