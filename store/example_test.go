package store_test

import (
	"context"
	"fmt"
	"strings"

	"parley/store"
	"parley/store/mem"
)

// This is a complete worker: it serves one order of each customer at a time, in the order
// in which they arrived. An order that was not done when the process ended is pulled
// again after the next start.
func Example() {
	ctx, closeShop := context.WithCancel(context.Background())
	db := mem.New()
	orders, bills := db.Queue("orders"), store.NewTable(db.Bucket("bills"), store.Report[[]string])
	customer := func(order store.Item) string { return strings.Split(order.ID, "/")[0] }
	serve := func(ctx context.Context, who string, take func() []store.Item) {
		for _, order := range take() {
			bill, _, err := bills.Upsert(ctx, who, func(b *[]string) error {
				*b = append(*b, string(order.Body))
				return nil
			})
			fmt.Println(who, bill, err, order.Done(ctx))
			if len(bill) == 2 {
				closeShop()
			}
		}
	}
	_ = orders.Push(ctx, "ann/1", []byte("tea"))
	_ = orders.Push(ctx, "ann/1", []byte("tea")) // the same order again is dropped
	_ = orders.Push(ctx, "ann/2", []byte("cake"))
	fmt.Println(store.Work(ctx, orders, customer, serve))
	// Output:
	// ann [tea] <nil> <nil>
	// ann [tea cake] <nil> <nil>
	// <nil>
}
