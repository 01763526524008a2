/** The stores of owners and of visits in memory. */
import type { Table, Undo } from '../../../client/src/memory/table.ts'
import type { Owner, Visit } from '../visits/schema.ts'
import type { OwnerStore, VisitStore } from '../visits/store.ts'

export type OwnerRow = Owner & { closed: bigint }
export type VisitRow = Visit & { ownerId: bigint }

export const ownersInMemory = (owners: Table<OwnerRow>, undo?: Undo[]): OwnerStore => ({
  list: async (_, query) =>
    owners.page(query, { by: 'name', where: ({ name }) => name.startsWith(query.prefix ?? '') }),
  get: async (_, id) => owners.get(id),
  newOwner: {
    output: (id, { name }) => ({ id, name }),
    insert: async (_, { name }) => owners.insert({ name, closed: 0n }, undo),
  },
  async count(_, id) {
    const owner = owners.get(id)
    if (owner) owners.update(owner, { closed: owner.closed + 1n }, undo)
  },
})

export function visitsInMemory(visits: Table<VisitRow>, undo?: Undo[]): VisitStore {
  const find = ({ ownerId, visitId }: { ownerId: bigint; visitId: bigint }) =>
    visits.rows.find((visit) => visit.id === visitId && visit.ownerId === ownerId)
  const newVisit: VisitStore['newVisit'] = {
    output: (id, { ownerId: _, ...visit }) => ({ id, ...visit, closedAt: null }),
    insert: async (_, visit) => visits.insert({ ...visit, closedAt: null }, undo),
  }
  return {
    list: async (_, { ownerId, urgent, ...query }) =>
      visits.page(query, {
        where: (visit) =>
          visit.ownerId === ownerId && (urgent === undefined || visit.urgent === urgent),
        order: 'descending',
      }),
    get: async (_, place) => find(place),
    newVisit,
    lock: async (_, id) => visits.get(id) !== undefined,
    lockAll: async (_, ids) => ids.every((id) => visits.get(id)),
    areOpen: async (_, ids) => ids.every((id) => visits.get(id)?.closedAt === null),
    create: async (call, visit) => newVisit.output(await newVisit.insert(call, visit), visit),
    async update(_, { urgent, note, ...place }) {
      const visit = find(place)
      const change = {
        ...(urgent !== undefined && { urgent }),
        ...(note !== undefined && { note }),
      }
      if (visit) visits.update(visit, change, undo)
    },
    async close(_, place) {
      const visit = find(place)
      if (visit?.closedAt !== null) return false
      visits.update(visit, { closedAt: new Date() }, undo)
      return true
    },
    async remove(_, place) {
      const visit = find(place)
      if (visit) visits.remove(visit, undo)
      return visit !== undefined
    },
  }
}
