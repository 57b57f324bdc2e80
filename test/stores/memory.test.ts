// The memory store passes the whole conformance suite, except that it does not survive a restart.
import { describe, it } from 'vitest'
import { storeConformance } from '../conformance/index.ts'
import { openMemoryStore } from '../../src/store/memory/store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

storeConformance(
  { describe, it },
  { name: 'memory', clock: () => new VirtualClock(), fresh: (clock) => openMemoryStore({ clock }) },
)
