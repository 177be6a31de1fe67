;;; toold.el --- Processes that outlive the editor  -*- lexical-binding: t -*-

;; Author: The toold authors <toold@localhost>
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: processes, tools
;; URL: https://toold.invalid/emacs
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; toold is a daemon that owns background processes, keeps their output and
;; reports their exit.  A process that Emacs starts with it runs on when Emacs
;; exits, and is there again, with its whole output and its exit code, when
;; Emacs comes back.
;;
;;   M-x toold-list            all processes, live
;;   M-x toold-compile         like `compile'; `next-error' works
;;   M-x toold-compile-attach  back to a compilation, running or ended
;;   M-x toold-shell-command   like `async-shell-command'
;;   M-x toold-attach          the input and output of a process
;;   M-x toold-answer          answer the question of a process
;;   M-x toold-mode-line       "2 run, 1 asks" in the mode line
;;
;; This file decides nothing: it calls the daemon's socket with JSON-RPC and
;; shows the answers.  Every buffer that shows output has a position in it, so
;; a lost connection loses nothing: events are resumed by their number, and
;; output by its position.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'comint)
(require 'compile)
(require 'eieio)
(require 'iso8601)
(require 'jsonrpc)
(require 'subr-x)
(require 'tabulated-list)
(require 'term)

;;;; Options

(defgroup toold nil
  "Processes that outlive Emacs."
  :group 'processes
  :prefix "toold-")

(defcustom toold-program "toolctl"
  "The client program of toold.
It starts the daemon if none runs, and shows the terminal of a process."
  :type 'string)

(defcustom toold-socket nil
  "The socket of the daemon.
If nil: $TOOLD_SOCKET, else toold/toold.sock in $XDG_RUNTIME_DIR, else
toold-UID/toold.sock in the directory for temporary files."
  :type '(choice (const :tag "As toolctl finds it" nil) file))

(defcustom toold-log-bytes (* 1024 1024)
  "How much of the end of the output a log or an attached buffer shows.
A compilation buffer always shows all of it."
  :type 'integer)

(defcustom toold-list-interval 2
  "Seconds between updates of ages and last lines in a visible process list.
Starts, exits and questions are shown at once, without this."
  :type 'number)

(defcustom toold-list-limit 200
  "The number of processes that the list shows, newest first."
  :type 'integer)

(defcustom toold-event-functions nil
  "Functions that are called with each event of the daemon, a plist.
The keys are those of the wire, such as `:type', `:id' and `:exit_code'.
Each event is passed once, also after a lost connection."
  :type 'hook)

(defface toold-running '((t :inherit success))
  "Face of the state of a process that runs.")

(defface toold-asks '((t :inherit warning))
  "Face of the state of a process that waits for input.")

(defface toold-failed '((t :inherit error))
  "Face of the state of a process that failed.")

;;;; State

(defconst toold--page-bytes (* 256 1024)
  "The size of one page of output.")

(defconst toold--call-seconds 30
  "The time limit of a call that does not start a process.")

(defconst toold--start-seconds 660
  "The time limit of a call that starts a process: a person may have to approve.")

(defconst toold--quick-retries 10
  "Attempts to reconnect, a tenth of a second apart, before the daemon is started.")

(defconst toold--retry-seconds-max 10
  "The longest time between two attempts to reconnect.")

(defconst toold--unrepeatable '("restart" "signal" "close")
  "Methods that are not sent a second time after a lost connection.")

(defconst toold--fields
  ["id" "name" "command" "cwd" "status" "exit_code" "signal" "reason" "started_at" "exited_at" "pty" "stdin"
   "needs_input" "labels" "bytes" "cursor" "output" "stopped" "failure"]
  "The fields of a process that this file reads.")

(defvar toold--connection nil "The connection, or nil.")
(defvar toold--socket-process nil "The network process of the connection.")
(defvar toold--last-seq nil "The number of the last event that was received.")
(defvar toold--lost nil "Non-nil from the loss of a connection to the next one.")
(defvar toold--retry-timer nil "The timer of the next attempt to reconnect.")
(defvar toold--starter nil "The run of `toolctl info' after a lost connection.")
(defvar toold--processes nil "The processes of the last `list', newest first.")
(defvar toold--questions (make-hash-table :test #'equal) "The last `needs_input' event by process id.")
(defvar toold--subscriptions (make-hash-table) "The buffer by the number of its subscription.")
(defvar toold--refresh-timer nil "The timer of the next `list'.")
(defvar toold--list-timer nil "The timer that updates visible lists.")
(defvar toold--counter 0 "Makes the keys of this Emacs unique.")
(defvar toold--sending nil "Non-nil while comint sends a line.")

(defvar-local toold--id nil "The process that this buffer shows.")
(defvar-local toold--process nil "The last known state of that process.")
(defvar-local toold--cursor 0 "The position in its output up to which this buffer shows it.")
(defvar-local toold--fetching nil "Non-nil while pages are being fetched.")
(defvar-local toold--wanted 0 "The position up to which output is known to exist.")
(defvar-local toold--subscription nil "The number of this buffer's subscription.")
(defvar-local toold--closed nil "Non-nil if no more output will come.")
(defvar-local toold--sink nil "Function that shows a piece of text in this buffer.")
(defvar-local toold--on-exit nil "Function that shows the end of the process, called with it.")
(defvar-local toold--output-end nil "Marker of the end of the output in this buffer.")
(defvar-local toold--compile-arguments nil "Command and flag of this compilation.")

(defvar-local toold-exit-code nil
  "The exit code of the process that this buffer shows.
Nil while it runs and if it is not known.")

;;;; Values of the wire

(defun toold--true-p (value)
  "Return non-nil if the JSON VALUE is true or an object."
  (and value (not (eq value :json-false))))

(defun toold--key ()
  "Return a key that no call has used."
  (format "emacs-%d-%d-%08x" (emacs-pid) (cl-incf toold--counter) (random #x100000000)))

(defun toold--label (process)
  "Return the name of PROCESS, or its id."
  (or (plist-get process :name) (plist-get process :id)))

(defun toold--ended-p (process)
  "Return non-nil if PROCESS has ended."
  (member (plist-get process :status) '("exited" "lost")))

(defun toold--question (process)
  "Return the question of PROCESS as a plist of `:prompt' and `:echo', or nil.
`needs_input' is an object in newer daemons.  In older ones it is true, and
the facts are those of its last event."
  (let ((value (plist-get process :needs_input)))
    (cond ((not (toold--true-p value)) nil)
          ((consp value) (list :prompt (plist-get value :prompt) :echo (plist-get value :echo)))
          (t (or (gethash (plist-get process :id) toold--questions)
                 ;; Nothing is known of the echo: a terminal may hide what is typed.
                 (list :prompt (toold--last-line (plist-get process :output))
                       :echo (if (toold--true-p (plist-get process :pty)) :json-false nil)))))))

(defun toold--exit-text (process)
  "Return the end of PROCESS as `compile' phrases it."
  (let ((code (plist-get process :exit_code))
        (signal-name (plist-get process :signal))
        (reason (plist-get process :reason)))
    (cond ((equal (plist-get process :status) "lost") "lost: its exit was not observed")
          (signal-name (concat "ended by " signal-name (if (member reason '(nil "signaled" "killed")) "" (format " (%s)" reason))))
          ((null code) (or (plist-get (plist-get process :failure) :message) (format "ended without an exit code (%s)" reason)))
          ((zerop code) "finished")
          (t (format "exited abnormally with code %d" code)))))

(defun toold--state (process)
  "Return the state of PROCESS as short text with a face."
  (let ((code (plist-get process :exit_code)))
    (cond ((equal (plist-get process :status) "lost") (propertize "lost" 'face 'toold-failed))
          ((plist-get process :signal) (propertize (plist-get process :signal) 'face 'toold-failed))
          ((toold--ended-p process)
           (if (eq code 0) "exited 0" (propertize (if code (format "exited %d" code) (or (plist-get process :reason) "ended")) 'face 'toold-failed)))
          ((toold--question process) (propertize "asks" 'face 'toold-asks))
          ((toold--true-p (plist-get process :stopped)) "stopped")
          (t (propertize (plist-get process :status) 'face 'toold-running)))))

(defun toold--time (text)
  "Return the seconds since the epoch of TEXT, a time of the wire, or nil."
  (and text (float-time (encode-time (iso8601-parse text t)))))

(defun toold--age (process)
  "Return the age of PROCESS in seconds, since its end if it has ended."
  (let ((since (or (toold--time (plist-get process :exited_at)) (toold--time (plist-get process :started_at)))))
    (if since (max 0 (- (float-time) since)) 0)))

(defun toold--duration (seconds)
  "Return SECONDS as short text."
  (cond ((< seconds 60) (format "%ds" seconds))
        ((< seconds 3600) (format "%dm" (/ seconds 60)))
        ((< seconds 86400) (format "%dh" (/ seconds 3600)))
        (t (format "%dd" (/ seconds 86400)))))

(defun toold--last-line (text)
  "Return the last line of TEXT that is not empty."
  (or (car (last (split-string (or text "") "[\n\r]+" t "[ \t]+"))) ""))

(defun toold--environment (extra)
  "Return parameters that pass the environment of Emacs, with EXTRA before it.
EXTRA has the form of `process-environment'."
  (let ((text (make-hash-table :test #'equal))
        (base64 (make-hash-table :test #'equal))
        (seen (make-hash-table :test #'equal)))
    (dolist (entry (append extra process-environment))
      (let* ((equals (string-match "=" entry))
             (name (if equals (substring entry 0 equals) entry)))
        (unless (or (equal name "") (gethash name seen))
          (puthash name t seen)
          (when equals
            (let ((value (substring entry (1+ equals))))
              ;; Bytes that are not UTF-8 are characters of their own in Emacs, and not in JSON.
              (if (string-match-p "[\x3fff80-\x3fffff]" (string-to-multibyte value))
                  (puthash name (base64-encode-string (encode-coding-string value 'utf-8-emacs) t) base64)
                (puthash name value text)))))))
    (list :env text :env_base64 base64)))

;;;; Connection

(defun toold--getenv (name)
  "Return the value of the variable NAME, or nil if it is empty."
  (let ((value (getenv name)))
    (and value (not (string-empty-p value)) value)))

(defun toold-socket-path ()
  "Return the path of the daemon's socket."
  (expand-file-name
   (or toold-socket
       (toold--getenv "TOOLD_SOCKET")
       (let ((runtime (toold--getenv "XDG_RUNTIME_DIR")))
         (and runtime (concat (file-name-as-directory runtime) "toold/toold.sock")))
       (format "%stoold-%d/toold.sock" (file-name-as-directory (or (toold--getenv "TMPDIR") "/tmp")) (user-uid)))))

(defun toold--program-arguments (&rest arguments)
  "Return ARGUMENTS of `toold-program' with those that name the socket."
  (append (and toold-socket (list "--socket" (toold-socket-path))) arguments))

(defun toold--check-owner (path)
  "Signal an error if the directory of the socket PATH belongs to another user."
  (let ((owner (file-attribute-user-id (file-attributes (file-name-directory path) 'integer))))
    (when (and owner (not (memq owner (list 0 (user-uid)))))
      (error "The directory of %s belongs to user %s" path owner))))

(defun toold--event-log-off ()
  "Return the arguments that turn off the log of jsonrpc.el, which is slow."
  (if (memq '-events-buffer-config (mapcar #'eieio-slot-descriptor-name (eieio-class-slots 'jsonrpc-process-connection)))
      (list :events-buffer-config '(:size 0))
    (list :events-buffer-scrollback-size 0)))

(defun toold--open ()
  "Connect to the socket and subscribe, or signal an error."
  (let ((path (toold-socket-path)))
    (toold--check-owner path)
    (let* ((process (make-network-process :name "toold" :family 'local :service path :noquery t
                                          ;; With `binary', jsonrpc.el cannot read the first ü.
                                          :coding 'utf-8-emacs-unix))
           (connection (apply #'make-instance 'jsonrpc-process-connection
                              :name "toold" :process process
                              :notification-dispatcher #'toold--on-notification
                              :on-shutdown #'toold--on-shutdown
                              (toold--event-log-off)))
           (sentinel (process-sentinel process)))
      (set-process-query-on-exit-flag process nil)
      ;; jsonrpc.el reports a lost connection in its own way: here it is reported once, when it is back.
      (set-process-sentinel process (lambda (process change)
                                      (let ((inhibit-message t) (message-log-max nil))
                                        (funcall sentinel process change))))
      (setq toold--connection connection toold--socket-process process)
      (when (timerp toold--retry-timer) (cancel-timer toold--retry-timer))
      (setq toold--retry-timer nil)
      (toold--subscribe)
      (dolist (buffer (toold--following))
        (with-current-buffer buffer (toold--resume)))
      (toold--refresh-soon)
      (toold--report-reconnected))))

(defun toold--report-reconnected ()
  "Report, once, that a lost connection is there again."
  (when toold--lost
    (setq toold--lost nil)
    (message "toold: the daemon was gone; connected again, and everything is resumed")))

(defun toold--subscribe ()
  "Subscribe to the events of all processes, after the last one that was received."
  (jsonrpc-async-request
   toold--connection 'events.subscribe
   (if toold--last-seq (list :after toold--last-seq) (make-hash-table))
   :success-fn #'ignore
   :error-fn (lambda (error) (message "toold: no events: %s" (plist-get error :message)))))

(defun toold--connect ()
  "Return the connection.  Start the daemon with `toold-program' if none answers."
  (unless (and toold--connection (jsonrpc-running-p toold--connection))
    (condition-case nil
        (toold--open)
      (file-error
       (toold--start-daemon)
       (condition-case failure
           (toold--open)
         (file-error (user-error "No daemon answers: %s" (error-message-string failure)))))))
  toold--connection)

(defun toold--check-program ()
  "Signal an error if `toold-program' is not there."
  (unless (executable-find toold-program)
    (user-error "%s is not in `exec-path': install toold, or set `toold-program'" toold-program)))

(defun toold--start-daemon ()
  "Start the daemon: run `toolctl info' once."
  (toold--check-program)
  (with-temp-buffer
    (let ((code (apply #'call-process toold-program nil t nil (toold--program-arguments "info"))))
      (unless (eq code 0)
        (user-error "The daemon does not start: %s" (string-trim (buffer-string)))))))

(defun toold--on-shutdown (connection)
  "Note that CONNECTION is lost, and reconnect if its events are needed."
  (let ((log (get-buffer "*toold events*")))
    (when log (kill-buffer log)))
  (when (eq connection toold--connection)
    (setq toold--connection nil)
    (clrhash toold--subscriptions)
    (when (toold--watched-p)
      (setq toold--lost t)
      (toold--retry-later 1))))

(defun toold--watched-p ()
  "Return non-nil if anything in this Emacs needs events."
  (or (bound-and-true-p toold-mode-line) toold-event-functions (toold--list-buffers) (toold--following)))

(defun toold--retry-later (attempt)
  "Schedule the reconnection with number ATTEMPT."
  (when (timerp toold--retry-timer) (cancel-timer toold--retry-timer))
  (setq toold--retry-timer
        (run-at-time (if (<= attempt toold--quick-retries) 0.1
                       (min toold--retry-seconds-max (* 0.1 (expt 2 (- attempt toold--quick-retries)))))
                     nil #'toold--retry attempt)))

(defun toold--retry (attempt)
  "Reconnect; this is attempt number ATTEMPT.
After `toold--quick-retries' of them the daemon is started, once."
  (unless toold--connection
    (condition-case nil
        (toold--open)
      (error
       (when (= attempt toold--quick-retries) (toold--start-daemon-later))
       (when (toold--watched-p) (toold--retry-later (1+ attempt)))))))

(defun toold--start-daemon-later ()
  "Run `toolctl info' in the background, and reconnect when it ends."
  (if (not (executable-find toold-program))
      (message "toold: the daemon is gone, and %s is not in `exec-path'" toold-program)
    (let ((buffer (generate-new-buffer " *toold info*"))
          (default-directory (file-name-as-directory (expand-file-name "~"))))
      (setq toold--starter
            (make-process
             :name "toold-info" :buffer buffer :noquery t :connection-type 'pipe
             :command (cons toold-program (toold--program-arguments "info"))
             :sentinel (lambda (process _change)
                         (unless (process-live-p process)
                           (unless (eq (process-exit-status process) 0)
                             (message "toold: the daemon does not start: %s"
                                      (with-current-buffer buffer (string-trim (buffer-string)))))
                           (kill-buffer buffer)
                           (setq toold--starter nil)
                           (unless toold--connection (toold--retry-later (1+ toold--quick-retries))))))))))

(defun toold-disconnect ()
  "Close the connection to the daemon.  Processes are not affected."
  (interactive)
  (when (timerp toold--retry-timer) (cancel-timer toold--retry-timer))
  (let ((connection toold--connection))
    (setq toold--connection nil toold--lost nil toold--retry-timer nil)
    (clrhash toold--subscriptions)
    (when (and connection (jsonrpc-running-p connection))
      ;; Not `jsonrpc-shutdown', which waits for the sentinel and warns.
      (delete-process toold--socket-process))))

(defun toold--transmit (connection method params on-result on-error)
  "Send the call METHOD with PARAMS on CONNECTION.
Pass the result to ON-RESULT or the error to ON-ERROR; its code is -1 if the
connection is lost."
  (condition-case failure
      (jsonrpc-async-request connection (intern method) (or params (make-hash-table))
                             :timeout nil :success-fn on-result :error-fn on-error)
    ;; The daemon is gone, and Emacs had not noticed.
    (error (when (eq connection toold--connection) (delete-process toold--socket-process))
           (funcall on-error (list :code -1 :message (error-message-string failure))))))

(defun toold--send (method params on-result &optional on-error)
  "Call METHOD with PARAMS and pass the result to ON-RESULT.
ON-ERROR gets the error; without it, the error is shown.  A call that the
loss of the connection ended is dropped: everything is resumed."
  (when (and toold--connection (jsonrpc-running-p toold--connection))
    (toold--transmit toold--connection method params on-result
                     (lambda (error)
                       (cond ((eq (plist-get error :code) -1) nil)
                             (on-error (funcall on-error error))
                             (t (message "toold: %s" (plist-get error :message))))))))

(defun toold-request (method params &optional seconds)
  "Call METHOD of the daemon with the plist PARAMS and return its result.
Wait at most SECONDS.  A call that a lost connection ended is sent again,
unless that could do something twice."
  (let ((until (+ (float-time) (or seconds toold--call-seconds)))
        (attempts (if (member method toold--unrepeatable) 1 2))
        answer)
    (while (not answer)
      (cl-decf attempts)
      ;; Notice the end of a daemon that is gone already: a write would fail, and in batch mode end Emacs (SIGPIPE).
      (when toold--connection (accept-process-output toold--socket-process 0))
      (toold--transmit (toold--connect) method params
                       (lambda (result) (setq answer (list 'result result)))
                       (lambda (error) (setq answer (list 'error error))))
      ;; Not `jsonrpc-request': in Emacs 28 it leaves the filter by `throw', and messages behind the answer wait there.
      (while (not answer)
        (when (> (float-time) until) (user-error "No answer to %s within %d seconds" method (or seconds toold--call-seconds)))
        (accept-process-output nil 0.1))
      (when (and (eq (car answer) 'error) (eq (plist-get (cadr answer) :code) -1) (> attempts 0))
        (setq answer nil)))
    (if (eq (car answer) 'result)
        (cadr answer)
      (user-error "%s" (plist-get (cadr answer) :message)))))

;;;; Events

(defun toold--on-notification (_connection method params)
  "Handle the notification METHOD with PARAMS."
  (when (eq method 'events.event)
    (let* ((event (plist-get params :result))
           (buffer (gethash (plist-get params :subscription) toold--subscriptions)))
      (condition-case failure
          (cond ((buffer-live-p buffer) (with-current-buffer buffer (toold--on-push event)))
                ((equal (plist-get event :type) "lagged") (toold--on-lagged event))
                (t (toold--on-event event)))
        (error (message "toold: an event was not shown: %s" (error-message-string failure)))))))

(defun toold--on-lagged (event)
  "Go on after the events that retention removed, which EVENT names."
  (setq toold--last-seq (max (or toold--last-seq 0) (plist-get event :to)))
  (toold--refresh-soon))

(defun toold--on-event (event)
  "Handle EVENT, which is durable and numbered, once."
  (let ((seq (plist-get event :seq)))
    (when (and seq (> seq (or toold--last-seq 0)))
      (setq toold--last-seq seq)
      (let ((id (plist-get event :id)))
        (pcase (plist-get event :type)
          ("needs_input"
           (puthash id event toold--questions)
           (message "toold: %s asks: %s (M-x toold-answer)" (toold--label event) (plist-get event :prompt)))
          ("exited" (remhash id toold--questions)))
        (dolist (buffer (toold--following id))
          (with-current-buffer buffer
            (pcase (plist-get event :type)
              ("exited" (toold--note event))
              ("closed"
               (setq toold--closed t
                     toold--wanted (max toold--wanted (plist-get event :bytes)))
               (toold--advance))))))
      (run-hook-with-args 'toold-event-functions event)
      (toold--refresh-soon))))

(defun toold--refresh-soon ()
  "Schedule a `list', so that many events at once cause one."
  (when (and (toold--watched-p) (not toold--refresh-timer))
    (setq toold--refresh-timer (run-at-time 0.05 nil #'toold--refresh))))

(defun toold--refresh ()
  "Get the processes and update all views of them."
  (setq toold--refresh-timer nil)
  (toold--send "list" (list :limit toold-list-limit :fields toold--fields) #'toold--on-list))

(defun toold--on-list (result)
  "Show the processes of RESULT, the answer of `list'."
  (setq toold--processes (append (plist-get result :processes) nil))
  (dolist (buffer (toold--list-buffers))
    (with-current-buffer buffer (toold--list-draw)))
  (when (bound-and-true-p toold-mode-line) (force-mode-line-update t)))

(defun toold--update ()
  "Return the processes, asked from the daemon now."
  (toold--on-list (toold-request "list" (list :limit toold-list-limit :fields toold--fields)))
  toold--processes)

(defun toold--inspect (id)
  "Return the process ID, asked from the daemon now."
  (toold-request "poll" (list :id id :fields toold--fields)))

;;;; Following the output of a process

(defun toold--following (&optional id)
  "Return the buffers that follow the output of a process, or of the process ID."
  (cl-remove-if-not (lambda (buffer)
                      (let ((its (buffer-local-value 'toold--id buffer)))
                        (and its (not (and (buffer-local-value 'toold--closed buffer) (null id)))
                             (or (null id) (equal id its)))))
                    (buffer-list)))

(defun toold--follow (process cursor sink on-exit)
  "Follow the output of PROCESS from CURSOR on in the current buffer.
SINK is called with each piece of text, ON-EXIT with the process when it has
ended and its output up to then was shown.  The job does not depend on the
buffer: killing it ends nothing."
  (setq toold--id (plist-get process :id)
        toold--process process
        toold--cursor cursor
        toold--wanted cursor
        toold--fetching nil
        toold--closed nil
        toold--sink sink
        toold--on-exit on-exit
        toold-exit-code nil
        toold--output-end (copy-marker (point-max) t))
  (add-hook 'kill-buffer-hook #'toold--unfollow nil t)
  (toold--resume))

(defun toold--resume ()
  "Subscribe to the output of this buffer's process and fetch what is missing."
  (let ((buffer (current-buffer)))
    (setq toold--fetching t)
    (toold--send "events.subscribe" (list :id toold--id :types ["closed"] :output t :ansi (toold--ansi))
                 (lambda (number)
                   (if (not (buffer-live-p buffer))
                       (toold--unsubscribe number)
                     (puthash number buffer toold--subscriptions)
                     (with-current-buffer buffer
                       (setq toold--subscription number)
                       (toold--fetch))))
                 (lambda (error) (toold--gone buffer error)))))

(defun toold--ansi ()
  "Return how the daemon shall pass escape sequences of this buffer's process.
Those of a terminal move the cursor, and a text buffer cannot show that."
  (if (toold--true-p (plist-get toold--process :pty)) "strip" "keep"))

(defun toold--gone (buffer error)
  "Show in BUFFER that its process cannot be read because of ERROR."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq toold--closed t toold--fetching nil)
      (funcall toold--sink (format "\n[toold: %s]\n" (plist-get error :message))))))

(defun toold--unsubscribe (number)
  "End the subscription NUMBER."
  (remhash number toold--subscriptions)
  (toold--send "events.unsubscribe" (list :subscription number) #'ignore #'ignore))

(defun toold--unfollow ()
  "End the subscription of the current buffer, and nothing else."
  (when toold--subscription
    (toold--unsubscribe toold--subscription)
    (setq toold--subscription nil))
  (setq toold--id nil))

(defun toold--fetch ()
  "Fetch the output after this buffer's position, page by page."
  (let ((buffer (current-buffer)) (id toold--id))
    (setq toold--fetching t)
    (toold--send "poll" (list :id id :cursor toold--cursor :max_bytes toold--page-bytes
                              :ansi (toold--ansi) :collapse :json-false)
                 (lambda (page)
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (when (equal id toold--id) (toold--on-page page)))))
                 (lambda (error) (toold--gone buffer error)))))

(defun toold--on-page (page)
  "Show PAGE, the answer of `poll', and fetch the next one if there is one."
  (let ((next (plist-get page :next_cursor))
        (gap (plist-get page :gap)))
    (when gap
      (funcall toold--sink (format "\n[toold: %d bytes were dropped here]\n"
                                   (- (plist-get gap :to) (plist-get gap :from)))))
    (funcall toold--sink (plist-get page :output))
    (setq toold--wanted (max toold--wanted (plist-get page :cursor)))
    (let ((moved (> next toold--cursor)))
      (setq toold--cursor next)
      (when (toold--true-p (plist-get page :closed)) (setq toold--closed t))
      (if (and moved (< next toold--wanted))
          (toold--fetch)
        ;; No progress: the rest is a part of a character, and comes with the rest of it.
        (setq toold--fetching nil toold--wanted next)
        (toold--note page)))))

(defun toold--on-push (event)
  "Show EVENT, a push of this buffer's subscription."
  (pcase (plist-get event :type)
    ("output"
     (setq toold--wanted (max toold--wanted (plist-get event :next_cursor)))
     (when (and (not toold--fetching) (= (plist-get event :cursor) toold--cursor))
       (setq toold--cursor (plist-get event :next_cursor))
       (funcall toold--sink (plist-get event :data))))
    ("lagged" (setq toold--wanted (max toold--wanted (plist-get event :to)))))
  (toold--advance))

(defun toold--note (process)
  "Note the state of PROCESS, an answer or an `exited' event, in this buffer."
  (setq toold--process (append (list :status (plist-get process :status) :exit_code (plist-get process :exit_code)
                                     :signal (plist-get process :signal) :reason (plist-get process :reason)
                                     :failure (plist-get process :failure) :bytes (plist-get process :bytes))
                               toold--process))
  (when (toold--ended-p process)
    (setq toold--wanted (max toold--wanted (or (plist-get process :bytes) 0))))
  (toold--advance))

(defun toold--advance ()
  "Fetch output that is missing in this buffer, or show the end of the process."
  (cond (toold--fetching nil)
        ((< toold--cursor toold--wanted) (toold--fetch))
        (t (when (and toold--on-exit (toold--ended-p toold--process))
             (let ((on-exit toold--on-exit))
               (setq toold--on-exit nil
                     toold-exit-code (plist-get toold--process :exit_code))
               (funcall on-exit toold--process)))
           (when (and toold--closed toold--subscription)
             (toold--unsubscribe toold--subscription)
             (setq toold--subscription nil)))))

(defun toold--insert (text)
  "Insert TEXT at the end of the output of this buffer, with its colours."
  (let* ((inhibit-read-only t)
         (start (marker-position toold--output-end))
         (at-end (= (point) (point-max)))
         (windows (cl-remove-if-not (lambda (window) (= (window-point window) (point-max)))
                                    (get-buffer-window-list nil nil t))))
    (save-excursion
      (goto-char start)
      (insert text)
      (let ((end (copy-marker (point))))
        (comint-carriage-motion start end)
        (ansi-color-apply-on-region start end)
        (set-marker end nil)))
    (when at-end (goto-char (point-max)))
    (dolist (window windows)
      (set-window-point window (point-max)))))

;;;; Choosing a process

(defun toold--read (prompt &optional test)
  "Ask with PROMPT for a process that passes TEST, return its id."
  (let* ((processes (cl-remove-if-not (or test #'identity) (toold--update)))
         (choices (toold--choices processes)))
    (unless choices (user-error "There is no such process"))
    (cdr (assoc (completing-read prompt choices nil t nil nil (caar choices)) choices))))

(defun toold--choices (processes)
  "Return the lines by which a person chooses one of PROCESSES, with the ids.
A line that is not unique has the id at its end."
  (let ((counts (make-hash-table :test #'equal)))
    (dolist (process processes)
      (cl-incf (gethash (toold--choice process) counts 0)))
    (mapcar (lambda (process)
              (let ((line (toold--choice process)) (id (plist-get process :id)))
                (cons (if (> (gethash line counts) 1) (format "%s  %s" line id) line) id)))
            processes)))

(defun toold--choice (process)
  "Return the line by which a person chooses PROCESS."
  (format "%s  %s  %s" (toold--label process) (substring-no-properties (toold--state process))
          (truncate-string-to-width (toold--last-line (plist-get process :command)) 60)))

(defun toold--here (prompt &optional test)
  "Return the id of the process at point or of this buffer.
Else ask with PROMPT for one that passes TEST."
  (or (and (derived-mode-p 'toold-list-mode) (tabulated-list-get-id))
      toold--id
      (toold--read prompt test)))

(defun toold--known (id)
  "Return the process ID as far as it is known here."
  (or (cl-find id toold--processes :key (lambda (process) (plist-get process :id)) :test #'equal)
      (list :id id)))

;;;; The list

(defvar toold-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'toold-log)
    (define-key map "a" #'toold-attach)
    (define-key map "c" #'toold-compile-attach)
    (define-key map "k" #'toold-kill)
    (define-key map "i" #'toold-answer)
    (define-key map "r" #'toold-rerun)
    map)
  "Keys of the process list.")

(define-derived-mode toold-list-mode tabulated-list-mode "Toold"
  "The processes of toold, live.

\\{toold-list-mode-map}"
  (setq tabulated-list-format [("Name" 18 t) ("State" 10 t) ("Age" 5 toold--older-p :right-align t) ("Command" 26 t) ("Last output" 0 nil)]
        tabulated-list-padding 1)
  (setq-local revert-buffer-function (lambda (&rest _) (toold--update)))
  (tabulated-list-init-header))

(defun toold--older-p (one other)
  "Return non-nil if the row ONE is of an older process than the row OTHER."
  (> (toold--age (toold--known (car one))) (toold--age (toold--known (car other)))))

(defun toold--list-buffers ()
  "Return the buffers with a process list."
  (cl-remove-if-not (lambda (buffer) (eq (buffer-local-value 'major-mode buffer) 'toold-list-mode)) (buffer-list)))

(defun toold--rank (process)
  "Return the place of PROCESS in the list: first those that ask."
  (cond ((toold--ended-p process) 2) ((toold--question process) 0) (t 1)))

(defun toold--row (process)
  "Return the row of PROCESS in the list."
  (let ((question (toold--question process)))
    (list (plist-get process :id)
          (vector (toold--label process)
                  (toold--state process)
                  (toold--duration (toold--age process))
                  (replace-regexp-in-string "[\n\t ]+" " " (plist-get process :command))
                  (if (and question (not (toold--ended-p process)))
                      (propertize (or (plist-get question :prompt) "") 'face 'toold-asks)
                    (toold--last-line (plist-get process :output)))))))

(defun toold--list-draw ()
  "Draw the list in the current buffer."
  (setq tabulated-list-entries
        (mapcar #'toold--row (cl-stable-sort (copy-sequence toold--processes) #'< :key #'toold--rank)))
  (tabulated-list-print t))

(defun toold--tick ()
  "Update visible lists until all processes have ended."
  (if (null (toold--list-buffers))
      (progn (cancel-timer toold--list-timer)
             (setq toold--list-timer nil))
    (when (and (cl-some (lambda (buffer) (get-buffer-window buffer t)) (toold--list-buffers))
               (cl-some (lambda (process) (not (toold--ended-p process))) toold--processes))
      (toold--refresh-soon))))

;;;###autoload
(defun toold-list ()
  "Show the processes of toold in a list that is updated by events."
  (interactive)
  (let ((buffer (get-buffer-create "*toold*")))
    (with-current-buffer buffer
      (unless (derived-mode-p 'toold-list-mode) (toold-list-mode))
      (toold--update))
    (unless toold--list-timer
      (setq toold--list-timer (run-at-time toold-list-interval toold-list-interval #'toold--tick)))
    (pop-to-buffer-same-window buffer)))

(defun toold-kill (id &optional hard)
  "Kill the process ID and its whole tree, after a question.
With a prefix argument HARD, send SIGKILL at once."
  (interactive (list (toold--here "Kill: " (lambda (process) (not (toold--ended-p process)))) current-prefix-arg))
  (let ((label (toold--label (toold--known id))))
    (when (or (not (called-interactively-p 'any)) (y-or-n-p (format "Kill %s and its tree? " label)))
      (toold--connect)
      (toold--send "kill" (append (list :id id) (and hard (list :signal "SIGKILL")))
                   (lambda (receipt) (message "toold: %s" (toold--receipt label receipt)))))))

(defun toold--receipt (label receipt)
  "Return RECEIPT, the answer of `kill' for the process LABEL, as text."
  (let ((result (elt (plist-get receipt :results) 0)))
    (pcase (plist-get result :status)
      ("killed" (format "%s is killed (%s)" label (mapconcat #'identity (plist-get result :signals_sent) ", ")))
      ("already_exited" (format "%s had ended already" label))
      (_ (format "%s has survivors: %s" label (plist-get result :survivors))))))

(defun toold-rerun (id)
  "Run the process ID again: the same command, directory and name.
If it still runs, it is killed first, after a question."
  (interactive (list (toold--here "Run again: ")))
  (let ((process (toold--inspect id)))
    (when (or (toold--ended-p process)
              (not (called-interactively-p 'any))
              (y-or-n-p (format "%s still runs.  Kill it and run it again? " (toold--label process))))
      (let ((new (toold-request "restart" (append (list :id id) (toold--environment nil)) toold--start-seconds)))
        (message "toold: %s runs again as %s" (toold--label process) (plist-get new :id))
        (toold--refresh-soon)
        (plist-get new :id)))))

(defun toold-answer (id)
  "Answer the question of the process ID.
What is typed is hidden, and kept out of all logs, if the terminal of the
process does not show it."
  (interactive (list (toold--here "Answer: " (lambda (process) (toold--question process)))))
  (let* ((process (toold--inspect id))
         (question (toold--question process))
         (prompt (string-trim (or (plist-get question :prompt) "")))
         (text (format "%s: %s " (toold--label process) (if (string-empty-p prompt) "input:" prompt))))
    (if (eq (plist-get question :echo) :json-false)
        (toold--submit id (read-passwd text) t)
      (toold--submit id (read-string text) nil))))

(defun toold--submit (id text secret)
  "Type TEXT and a newline into the process ID.
If SECRET, keep it out of logs and events, and clear TEXT."
  (unwind-protect
      (toold-request "submit" (append (list :id id :data text :write_id (toold--key)) (and secret (list :secret t))))
    (when secret (clear-string text)))
  (toold--refresh-soon))

;;;; The log

(defvar toold-log-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "a" #'toold-attach)
    (define-key map "k" #'toold-kill)
    (define-key map "i" #'toold-answer)
    (define-key map "r" #'toold-rerun)
    map)
  "Keys of a log.")

(define-derived-mode toold-log-mode special-mode "Toold-Log"
  "The output of a process, followed.

\\{toold-log-mode-map}"
  (setq mode-line-process ":run"))

(defun toold--start-cursor (process)
  "Return the position from which a log of PROCESS is shown."
  (max 0 (- (or (plist-get process :cursor) 0) toold-log-bytes)))

(defun toold--show-exit (process)
  "Show the end of PROCESS below its output."
  (let ((inhibit-read-only t)
        (at-end (= (point) (point-max))))
    (save-excursion
      (goto-char (point-max))
      (set-marker-insertion-type toold--output-end nil)
      (insert (if (bolp) "" "\n") "\n" (propertize (format "%s %s" (toold--label process) (toold--exit-text process)) 'face 'bold) "\n")
      (set-marker-insertion-type toold--output-end t))
    (when at-end (goto-char (point-max))))
  (setq mode-line-process (format ":%s" (substring-no-properties (toold--state process))))
  (force-mode-line-update))

(defun toold-log (id)
  "Show the output of the process ID and follow it."
  (interactive (list (toold--here "Log: ")))
  (let* ((process (toold--inspect id))
         (buffer (get-buffer-create (format "*toold log %s*" (toold--label process)))))
    (with-current-buffer buffer
      (toold--unfollow)
      (let ((inhibit-read-only t)) (erase-buffer))
      (toold-log-mode)
      (setq default-directory (file-name-as-directory (plist-get process :cwd)))
      (toold--follow process (toold--start-cursor process) #'toold--insert #'toold--show-exit))
    (pop-to-buffer buffer)))

;;;; Attaching

(defvar toold-attach-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap comint-send-eof] #'toold-close-input)
    (define-key map [remap comint-delchar-or-maybe-eof] #'toold-close-input-or-delete)
    (define-key map [remap comint-interrupt-subjob] #'toold-interrupt)
    (define-key map [remap comint-quit-subjob] #'toold-quit)
    (define-key map [remap comint-kill-subjob] #'toold-kill)
    map)
  "Keys of a buffer that is attached to a process.")

(define-derived-mode toold-attach-mode comint-mode "Toold-Attach"
  "The input and output of a process without a terminal.

\\{toold-attach-mode-map}"
  (setq-local comint-input-sender #'toold--send-input)
  (setq-local comint-process-echoes nil)
  (remove-hook 'comint-output-filter-functions #'comint-watch-for-password-prompt t)
  (setq-local comint-output-filter-functions
              (append (remq 'comint-watch-for-password-prompt (default-value 'comint-output-filter-functions))
                      '(toold--watch-for-password)))
  (setq mode-line-process ":run"))

(defun toold--send-input (_process text)
  "Type TEXT, a line of this buffer, into its process."
  (let ((toold--sending t))
    (toold--submit toold--id text nil)))

(defun toold--watch-for-password (text)
  "Ask for a secret if TEXT ends with a prompt for one."
  (when (and (toold--live-p) (let ((case-fold-search t)) (string-match-p comint-password-prompt-regexp text)))
    (let ((buffer (current-buffer)) (prompt (string-trim text)))
      (run-at-time 0 nil (lambda ()
                           (when (buffer-live-p buffer)
                             (with-current-buffer buffer
                               (toold--submit toold--id (read-passwd (concat (toold--last-line prompt) " ")) t))))))))

(defun toold--live-p ()
  "Return non-nil unless the process of this buffer has ended."
  (and toold--id (not (toold--ended-p toold--process))))

(defun toold-close-input ()
  "Close the input of this buffer's process."
  (interactive)
  (toold-request "close" (list :id toold--id)))

(defun toold-close-input-or-delete (count)
  "Delete COUNT characters forward, or close the input at the end of the buffer."
  (interactive "p")
  (if (and (eobp) (toold--live-p)) (toold-close-input) (delete-char count)))

(defun toold-interrupt ()
  "Send SIGINT to this buffer's process."
  (interactive)
  (toold-request "signal" (list :id toold--id :signal "SIGINT")))

(defun toold-quit ()
  "Send SIGQUIT to this buffer's process."
  (interactive)
  (toold-request "signal" (list :id toold--id :signal "SIGQUIT")))

;;;###autoload
(defun toold-attach (id)
  "Show the process ID with its input and output.
A process with a terminal is shown in `term', by `toolctl attach'; any other
in `comint-mode'.  Killing the buffer leaves the process alone."
  (interactive (list (toold--here "Attach: " (lambda (process) (not (toold--ended-p process))))))
  (let ((process (toold--inspect id)))
    (if (toold--true-p (plist-get process :pty))
        (toold--attach-terminal process)
      (toold--attach-pipe process))))

(defun toold--attach-terminal (process)
  "Show the terminal of PROCESS."
  (toold--check-program)
  (let ((buffer (get-buffer (format "*toold %s*" (toold--label process)))))
    (unless (and buffer (get-buffer-process buffer))
      (setq buffer (apply #'make-term (format "toold %s" (toold--label process)) toold-program nil
                          (toold--program-arguments "attach" (plist-get process :id))))
      (set-process-query-on-exit-flag (get-buffer-process buffer) nil)
      (with-current-buffer buffer
        (term-mode)
        (term-char-mode)))
    (pop-to-buffer buffer)))

(defun toold--attach-pipe (process)
  "Show PROCESS, which has no terminal, in `comint-mode'."
  (let ((buffer (get-buffer-create (format "*toold %s*" (toold--label process)))))
    (with-current-buffer buffer
      (unless (and (equal toold--id (plist-get process :id)) (get-buffer-process buffer))
        (toold--unfollow)
        (let ((inhibit-read-only t)) (erase-buffer))
        (toold-attach-mode)
        (setq default-directory (file-name-as-directory (plist-get process :cwd)))
        ;; comint wants a process of Emacs for its marks.  This one runs nothing.
        (let ((stand-in (make-pipe-process :name "toold-attach" :buffer buffer :noquery t :filter #'ignore :sentinel #'ignore)))
          (set-marker (process-mark stand-in) (point-max))
          (toold--follow process (toold--start-cursor process)
                         (lambda (text) (toold--attached-output stand-in text))
                         (lambda (ended)
                           (comint-output-filter stand-in (format "\n%s %s\n" (toold--label ended) (toold--exit-text ended)))
                           (setq mode-line-process (format ":%s" (substring-no-properties (toold--state ended))))
                           (toold--delete-stand-in stand-in))))))
    (pop-to-buffer buffer)))

(defun toold--attached-output (stand-in text)
  "Show TEXT, output of the process of this attached buffer, by STAND-IN."
  (if (process-live-p stand-in)
      (comint-output-filter stand-in text)
    ;; A program that the process has started may print after its end.
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char (point-max))
        (insert text)))))

(defun toold--delete-stand-in (stand-in)
  "Delete STAND-IN, the process of Emacs in an attached buffer."
  ;; The process may end while its last line is sent, and comint needs the stand-in after that.
  (if toold--sending
      (run-at-time 0.05 nil #'toold--delete-stand-in stand-in)
    (delete-process stand-in)))

;;;; Starting

(defun toold--directory ()
  "Return the directory in which a process is started."
  (when (file-remote-p default-directory)
    (user-error "Toold runs processes on this machine, and %s is on another" default-directory))
  (expand-file-name default-directory))

(defun toold--exec (command kind more)
  "Start the shell COMMAND here, as Emacs would, and return the process.
KIND labels it, and MORE are further parameters."
  (toold-request
   "exec"
   (append (list :command command :cwd (toold--directory) :shell shell-file-name :login :json-false
                 :labels (list :client "emacs" :emacs kind) :env_mode "replace" :request_id (toold--key))
           more)
   toold--start-seconds))

;;;###autoload
(defun toold-shell-command (command &optional terminal)
  "Run the shell COMMAND in the background, also beyond the end of Emacs.
With a prefix argument, or if TERMINAL is non-nil, give it a terminal."
  (interactive (list (read-shell-command (if current-prefix-arg "Command in a terminal: " "Command: ")) current-prefix-arg))
  (let* ((variables (list (format "INSIDE_EMACS=%s,toold" emacs-version)))
         (process (toold--exec command "shell"
                               (if terminal
                                   (append (list :pty (list :rows 24 :cols 80)) (toold--environment (cons "TERM=xterm-256color" variables)))
                                 (append (list :stdin "pipe" :merge t) (toold--environment (cons "TERM=dumb" variables)))))))
    (toold-attach (plist-get process :id))
    (plist-get process :id)))

;;;; Compiling

(defvar toold-compile-minor-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap kill-compilation] #'toold-kill)
    (define-key map [remap recompile] #'toold-recompile)
    (define-key map (kbd "C-c C-a") #'toold-answer)
    map)
  "Keys of a compilation that toold runs.")

(define-minor-mode toold-compile-minor-mode
  "Keys of `compilation-mode' for a compilation that toold runs."
  :lighter " toold"
  (setq-local revert-buffer-function (lambda (&rest _) (toold-recompile))))

(defun toold--compile-buffer ()
  "Return a buffer for a compilation: not that of an unfinished one."
  (let ((buffer (get-buffer "*toold-compile*")))
    (if (and buffer (with-current-buffer buffer (toold--live-p)))
        (generate-new-buffer "*toold-compile*")
      (get-buffer-create "*toold-compile*"))))

(defun toold--compile-show (process arguments)
  "Show PROCESS in a compilation buffer; return the buffer.
ARGUMENTS are those of `toold-compile', for `toold-recompile'."
  (let ((buffer (or (cl-find-if (lambda (buffer) (buffer-local-value 'toold--compile-arguments buffer))
                                (toold--following (plist-get process :id)))
                    (toold--compile-buffer))))
    (with-current-buffer buffer
      (unless (equal toold--id (plist-get process :id))
        (toold--unfollow)
        (let ((inhibit-read-only t)
              (directory (file-name-as-directory (plist-get process :cwd))))
          (erase-buffer)
          (setq default-directory directory)
          (insert (format "-*- mode: compilation; default-directory: %S -*-\n%s started at %s as %s\n\n%s\n"
                          (abbreviate-file-name directory) "Compilation"
                          (format-time-string "%a %b %e %T" (toold--time (plist-get process :started_at)))
                          (plist-get process :id) (plist-get process :command)))
          ;; Nothing above is an error message, although its time looks like one: for Emacs 30, and for those before.
          (put-text-property (point-min) (point) 'compilation-annotation t)
          (put-text-property (1- (point)) (point) 'compilation-header-end t)
          (compilation-mode)
          (setq default-directory directory)
          (setq-local compilation-directory directory)
          ;; Emacs 30 shows the duration.
          (set (make-local-variable 'compilation--start-time) (toold--time (plist-get process :started_at))))
        (toold-compile-minor-mode 1)
        (setq toold--compile-arguments arguments)
        (setq mode-line-process '((:propertize ":run" face compilation-mode-line-run)))
        (unless compilation-scroll-output (goto-char (point-min)))
        (toold--follow process 0 #'toold--compile-insert #'toold--compile-exit)))
    (setq next-error-last-buffer buffer)
    (display-buffer buffer '(nil (allow-no-window . t)))
    buffer))

(defun toold--compile-insert (text)
  "Show TEXT, output of the compilation of this buffer."
  (let ((compilation-filter-start (marker-position toold--output-end)))
    (toold--insert text)
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char toold--output-end)
        (run-hooks 'compilation-filter-hook)))))

(defun toold--compile-exit (process)
  "Show the end of PROCESS, the compilation of this buffer."
  (let ((code (plist-get process :exit_code)))
    (set-marker-insertion-type toold--output-end nil)
    ;; An unknown code counts as a failure for hooks; it is not shown as one.
    (compilation-handle-exit (if (plist-get process :signal) 'signal 'exit) (or code 1)
                             (concat (toold--exit-text process) "\n"))
    (set-marker-insertion-type toold--output-end t)
    (unless code
      (setq mode-line-process '((:propertize ":exit [?]" face compilation-mode-line-fail))))))

;;;###autoload
(defun toold-compile (command &optional input)
  "Compile with the shell COMMAND, like `compile', but beyond the end of Emacs.
The output goes to a buffer in `compilation-mode', so `next-error' works.
`toold-compile-attach' comes back to it, also from another Emacs.
With a prefix argument, or if INPUT is non-nil, the command has an input,
and its questions can be answered with `toold-answer'.

Return the buffer."
  (interactive
   (list (if (or compilation-read-command current-prefix-arg)
             (compilation-read-command (eval compile-command t))
           (eval compile-command t))
         current-prefix-arg))
  (setq compile-command command)
  (save-some-buffers (not compilation-ask-about-save) compilation-save-buffers-predicate)
  (toold--compile-show
   (toold--exec command "compile"
                (append (list :merge t :stdin (if input "pipe" "null"))
                        (toold--environment (append compilation-environment
                                                    (list "TERM=dumb" (format "INSIDE_EMACS=%s,compile" emacs-version))))))
   (list command input)))

(defun toold-recompile ()
  "Compile again: the command of this buffer, in its directory."
  (interactive)
  (if toold--compile-arguments
      (apply #'toold-compile toold--compile-arguments)
    (toold-compile (eval compile-command t))))

;;;###autoload
(defun toold-compile-attach (id)
  "Show the process ID in a compilation buffer: all of its output, and its end.
It may run or have ended, and this or another Emacs, an agent or a shell may
have started it.  Interactively, compilations are offered first.

Return the buffer."
  (interactive (list (if (derived-mode-p 'toold-list-mode)
                         (tabulated-list-get-id)
                       (toold--read "Compilation: " #'toold--compilation-p))))
  (let ((process (toold--inspect id)))
    (toold--compile-show process (list (plist-get process :command) (not (equal (plist-get process :stdin) "null"))))))

(defun toold--compilation-p (process)
  "Return non-nil if `toold-compile' started PROCESS."
  (equal (plist-get (plist-get process :labels) :emacs) "compile"))

;;;; Mode line

(defun toold-status ()
  "Return the number of processes that run and that ask, as short text."
  (let* ((running (cl-remove-if #'toold--ended-p toold--processes))
         (asking (cl-count-if #'toold--question running)))
    (cond ((null running) "")
          ((zerop asking) (format "%d run" (length running)))
          (t (format "%d run, %d asks" (length running) asking)))))

(defvar toold--mode-line '(:eval (toold--mode-line-text)) "The element of the mode line.")
(put 'toold--mode-line 'risky-local-variable t)

(defun toold--mode-line-text ()
  "Return the text for the mode line."
  (let ((status (toold-status)))
    (cond ((string-empty-p status) "")
          (t (concat " " (propertize (concat "toold: " status) 'help-echo "Processes of toold: M-x toold-list"
                                     'face (if (string-search "asks" status) 'toold-asks 'default)))))))

;;;###autoload
(define-minor-mode toold-mode-line
  "Show in the mode line how many processes of toold run and how many ask."
  :global t
  (setq global-mode-string (delq 'toold--mode-line (or global-mode-string '(""))))
  (when toold-mode-line
    (setq global-mode-string (append global-mode-string '(toold--mode-line)))
    (toold--update)))

(provide 'toold)
;;; toold.el ends here
