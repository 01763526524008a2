/** Creations without the fields that have a default, by the types that two generators write. */
import type { NewVisit } from './hey-api/types.gen.ts'
import type { components } from './typescript.ts'

const creations: [components['schemas']['NewVisit'], NewVisit][] = [
  [
    { reference: 'V-1', at: '2026-01-02T03:04:05Z' },
    { reference: 'V-1', at: new Date(0) },
  ],
  [
    { reference: 'V-2', at: '2026-01-02T03:04:05Z', note: null, urgent: true },
    { reference: 'V-2', at: new Date(0), note: 'Asleep' },
  ],
]
console.log(creations.length)
