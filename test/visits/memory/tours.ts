/** The store of tours in memory, with their visits. */
import type { Table, Undo } from '../../../client/src/memory/table.ts'
import type { Tour } from '../tours/schema.ts'
import type { TourStore } from '../tours/store.ts'

export const toursInMemory = (tours: Table<Tour>, undo?: Undo[]): TourStore => ({
  list: async (_, query) => tours.page(query, { by: 'from' }),
  get: async (_, id) => tours.get(id),
  async create(_, tour) {
    const row = { ...tour, state: 'planned' as const }
    return { id: tours.insert(row, undo), ...row }
  },
  async move(_, id, from, to) {
    const tour = tours.get(id)
    if (tour?.state !== from) return false
    tours.update(tour, { state: to }, undo)
    return true
  },
  async leaveOut(_, visitId) {
    for (const tour of tours.rows) {
      tours.update(tour, { visitIds: tour.visitIds.filter((id) => id !== visitId) }, undo)
    }
  },
})
