"""The store: what every check found, the state of every alarm, and what was told. One SQLite file, beside it a lock.

The rule: a run is recorded in one short transaction or not at all, so that a kill at any moment costs no committed run.
Whatever is wrong with a store becomes one StoreError with its class and the remedy. SQLAlchemy stays in this room.
"""
