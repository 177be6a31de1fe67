"""The attributes of processes and events. Their types are in the stub beside this file."""


class ProcessFields:
    pass


class EventFields:
    pass
