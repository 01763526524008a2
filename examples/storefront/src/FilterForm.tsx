/** The filter of the catalogue. */
import { type Filter, go, links, replace, statuses } from './route.ts'
import { categories, otherCategory, statusNames } from './shop.ts'

export function FilterForm({ filter }: { filter: Filter }) {
  // Each letter changes the URL, so it must not add an entry to the history.
  const narrow = (change: Partial<Filter>) => replace(links.catalogue({ ...filter, ...change }))
  return (
    <search className="filters">
      <fieldset className="filter">
        <legend>Show</legend>
        {[...statuses, undefined].map((status) => (
          <label key={status ?? 'all'}>
            <input
              type="radio"
              name="status"
              value={status ?? 'all'}
              checked={status === filter.status}
              onChange={() => go(links.catalogue({ ...filter, status }))}
            />
            <span>{status ? statusNames[status] : 'All'}</span>
          </label>
        ))}
      </fieldset>
      <input
        className="control"
        type="search"
        aria-label="Name"
        placeholder="Search by name"
        autoComplete="off"
        spellCheck={false}
        value={filter.name}
        onChange={({ target }) => narrow({ name: target.value })}
      />
      <select
        className="control"
        aria-label="Kind"
        value={String(filter.kind ?? '')}
        onChange={({ target: { value } }) =>
          narrow({ kind: value === '' ? undefined : value === 'other' ? value : BigInt(value) })
        }
      >
        <option value="">All kinds</option>
        {[...categories].map(([id, { name }]) => (
          <option key={String(id)} value={String(id)}>
            {name}
          </option>
        ))}
        <option value="other">{otherCategory.name}</option>
      </select>
    </search>
  )
}
