/** The inputs and outputs of tours, which go to visits. */
import { z } from 'zod'
import {
  dateTimeInput,
  dateTimeOutput,
  int64Input,
  int64Output,
  textInput,
  textOutput,
} from '../../../src/procedure/fields.ts'
import { MAX_LIMIT, pagingInputs, timeCursor } from '../../../src/procedure/paging.ts'

/** Visits of a tour. */
const MAX_VISITS = 20

const state = z.enum(['planned', 'started', 'finished'])
const vehicle = z.enum(['foot', 'bicycle', 'car'], { error: 'must be foot, bicycle or car' })
const aboutVehicle = { description: 'How the driver travels.' }

export const NewTour = z
  .object({
    driver: textInput({ description: 'Who travels.' }, 40),
    vehicle: vehicle.default('car').meta(aboutVehicle),
    from: dateTimeInput({ description: 'When the tour begins.' }),
    until: dateTimeInput({ description: 'When the tour ends.' }),
    visitIds: z
      .array(int64Input({ description: 'Identifier of a visit.' }), { error: 'must be a list' })
      .min(1, 'must name a visit')
      .max(MAX_VISITS, `must name at most ${MAX_VISITS} visits`)
      .refine((ids) => new Set(ids).size === ids.length, 'must not name a visit twice')
      .meta({ description: 'The visits, in the order of the tour.' }),
  })
  .refine(({ from, until }) => until > from, { path: ['until'], error: 'must be after from' })
  .meta({ id: 'NewTour', description: 'A tour to plan.' })

/** What the schemas above say of no single field: see `rules` of the procedure. */
export const RULES = ['until must be after from', 'visitIds must not name a visit twice']

export const Tour = z
  .object({
    id: int64Output({ description: 'Identifies the tour.' }),
    driver: textOutput({ description: 'Who travels.' }, 40),
    vehicle: vehicle.meta(aboutVehicle),
    from: dateTimeOutput({ description: 'When the tour begins.' }),
    until: dateTimeOutput({ description: 'When the tour ends.' }),
    state: state.meta({ description: 'What has become of the tour.' }),
    visitIds: z
      .array(int64Output({ description: 'Identifier of a visit.' }))
      .max(MAX_VISITS)
      .meta({ description: 'The visits that are left, in the order of the tour.' }),
  })
  .meta({ id: 'Tour', description: 'A tour.' })

export const Tours = z
  .array(Tour)
  .max(MAX_LIMIT)
  .meta({ id: 'Tours', description: 'Tours, by the time at which they begin.' })

export const ListTours = z.object({
  ...pagingInputs('tours'),
  cursor: timeCursor('tours', 'from'),
})

export const OneTour = z.object({ tourId: int64Input({ description: 'Identifier of the tour.' }) })

export type State = z.output<typeof state>
export type NewTour = z.output<typeof NewTour>
export type Tour = z.output<typeof Tour>
export type ListTours = z.output<typeof ListTours>
