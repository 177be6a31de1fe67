// The package `toold`: a client of the daemon that owns background processes.
"use strict";

const { Toold } = require("./client.js");
const { rpcError, ...errors } = require("./errors.js");
const { Process } = require("./process.js");
const { Event, Subscription } = require("./subscription.js");

module.exports = { Event, Process, Subscription, Toold, ...errors };
